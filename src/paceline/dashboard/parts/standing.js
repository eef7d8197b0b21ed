// How far a job is: one bar, and in words what each part of it is.
export default {
  template: `
    <div>
      <div class="meter-track" role="img" :aria-label="words">
        <span v-for="part in parts" :key="part.label" class="meter-fill" :class="'meter-fill--' + part.tone"
          :style="{ width: (100 * part.value) / Math.max(1, total) + '%' }"></span>
      </div>
      <p class="standing-key">
        <span v-for="part in shown" :key="part.label"><i class="swatch" :class="part.class"></i>{{ part.value.toLocaleString() }} {{ part.label }}</span>
      </p>
    </div>`,
  props: { parts: { type: Array, default: () => [] }, total: Number, waiting: Number },
  computed: {
    shown() {
      const parts = this.parts.map((part) => ({ ...part, class: "meter-fill--" + part.tone }));
      return this.waiting ? [...parts, { label: "waiting", value: this.waiting, class: "swatch--waiting" }] : parts;
    },
    words() {
      return this.shown.map((part) => `${part.value} ${part.label}`).join(", ");
    },
  },
};
