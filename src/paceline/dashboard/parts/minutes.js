// Messages a minute: a bar for each, what failed on top of what was sent. The last bar is the minute that still runs.
const HEIGHT = 150;
const TOP = 10;
const BOTTOM = 22;
const LEFT = 46;
const FEWEST = 20;

// The smallest of 1, 2, 5, 10, 20, 50 … that is not below the highest bar.
function ceiling(value) {
  for (let power = 1; ; power *= 10) for (const step of [1, 2, 5]) if (step * power >= value) return step * power;
}

export default {
  template: `
    <figure class="minutes" ref="box">
      <svg :width="width" :height="height" role="img" :aria-label="label" @mousemove="over" @mouseleave="at = null">
        <g class="grid">
          <g v-for="tick in ticks" :key="tick">
            <line :x1="left" :x2="width" :y1="y(tick)" :y2="y(tick)" />
            <text :x="left - 6" :y="y(tick) + 4" text-anchor="end">{{ tick.toLocaleString() }}</text>
          </g>
          <text v-for="mark in marks" :key="mark.x" :x="mark.x" :y="height - 5" text-anchor="middle">{{ mark.text }}</text>
        </g>
        <g v-for="(bar, index) in bars" :key="bar.at" :class="{ 'bar-now': index === bars.length - 1, 'bar-at': index === at }">
          <rect class="bar-sent" :x="bar.x" :y="bar.ySent" :width="bar.width" :height="bar.hSent" rx="1.5" />
          <rect class="bar-failed" :x="bar.x" :y="bar.yFailed" :width="bar.width" :height="bar.hFailed" rx="1.5" />
        </g>
      </svg>
      <figcaption v-if="at !== null" class="tip" :style="{ left: tipX + 'px' }">{{ tip }}</figcaption>
    </figure>`,
  props: { minutes: Array },
  data: () => ({ width: 600, height: HEIGHT, left: LEFT, at: null }),
  computed: {
    // From the first minute that has something to show, so that a young fleet's bars are not lost at the edge.
    shown() {
      const first = this.minutes.findIndex((minute) => minute.sent || minute.failed);
      const fewest = this.minutes.length - FEWEST;
      return this.minutes.slice(Math.max(0, Math.min(first < 0 ? fewest : first, fewest)));
    },
    most() {
      return ceiling(Math.max(4, ...this.shown.map((minute) => minute.sent + minute.failed)));
    },
    ticks() {
      return [0, this.most / 2, this.most];
    },
    step() {
      return (this.width - LEFT) / Math.max(1, this.shown.length);
    },
    bars() {
      const bottom = this.y(0);
      return this.shown.map((minute, index) => {
        const ySent = this.y(minute.sent);
        const yFailed = this.y(minute.sent + minute.failed);
        const width = Math.max(1, this.step - Math.min(3, this.step / 3));
        return { at: minute.at, x: LEFT + index * this.step, width, ySent, hSent: bottom - ySent, yFailed, hFailed: ySent - yFailed };
      });
    },
    marks() {
      const every = this.shown.length <= 30 ? 5 : this.width < 420 ? 30 : 15;
      return this.shown
        .map((minute, index) => ({ at: new Date(minute.at), x: LEFT + (index + 0.5) * this.step }))
        .filter((mark) => mark.at.getMinutes() % every === 0 && mark.x > LEFT + 26 && mark.x < this.width - 30)
        .map((mark) => ({ x: mark.x, text: mark.at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) }));
    },
    label() {
      const sent = this.minutes.reduce((sum, minute) => sum + minute.sent, 0);
      const failed = this.minutes.reduce((sum, minute) => sum + minute.failed, 0);
      return `Messages a minute in the last hour: ${sent} sent, ${failed} failed in all`;
    },
    tip() {
      const minute = this.shown[this.at];
      const time = new Date(minute.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      return `${time} · ${minute.sent} sent` + (minute.failed ? `, ${minute.failed} failed` : "");
    },
    tipX() {
      return Math.min(Math.max(LEFT + (this.at + 0.5) * this.step, 70), this.width - 70);
    },
  },
  methods: {
    y(value) {
      return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / this.most);
    },
    over(event) {
      const index = Math.floor((event.offsetX - LEFT) / this.step);
      this.at = index >= 0 && index < this.shown.length ? index : null;
    },
  },
  mounted() {
    this.observer = new ResizeObserver(([entry]) => (this.width = Math.max(200, entry.contentRect.width)));
    this.observer.observe(this.$refs.box);
  },
  unmounted() {
    this.observer.disconnect();
  },
};
