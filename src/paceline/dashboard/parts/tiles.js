// A row of figures. Each is a number, words, or a moment that the browser says in its own timezone.
import { clock, everySecond, relative } from "/static/times.js";

export default {
  template: `
    <dl class="tiles">
      <div v-for="tile in tiles" :key="tile.label" class="tile" :class="tile.tone ? 'tile--' + tile.tone : ''">
        <dt>{{ tile.label }}</dt>
        <dd>
          <span :class="['tile-figure', { 'tile-figure--time': tile.at }]">{{ figure(tile) }}<small v-if="tile.of"> / {{ tile.of.toLocaleString() }}</small></span>
          <a v-if="tile.href" class="tile-note" :href="tile.href">{{ tile.note }}</a>
          <span v-else class="tile-note">{{ note(tile) }}</span>
        </dd>
      </div>
    </dl>`,
  props: { tiles: Array },
  data: () => ({ now: Date.now() }),
  methods: {
    figure(tile) {
      if (tile.at) return clock(tile.at, this.now);
      return typeof tile.value === "number" ? tile.value.toLocaleString() : tile.value;
    },
    note(tile) {
      return tile.at ? relative(tile.at, this.now) : tile.note || "\u00a0";
    },
  },
  mounted() {
    this.stop = everySecond((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
};
