// A moment that ticks by itself. What is not its main way of saying it is shown on hover.
import { clock, everySecond, exact, relative } from "/static/times.js";

export default {
  template: '<time v-if="ms" :datetime="iso" :title="title">{{ words }}</time><span v-else>{{ none }}</span>',
  props: { ms: Number, form: String, none: String },
  data: () => ({ now: Date.now() }),
  computed: {
    iso() {
      return new Date(this.ms).toISOString();
    },
    words() {
      return { relative, clock, exact }[this.form](this.ms, this.now);
    },
    title() {
      return this.form === "relative" ? exact(this.ms) : relative(this.ms, this.now);
    },
  },
  mounted() {
    this.stop = everySecond((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
};
