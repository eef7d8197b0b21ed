// A job over time: what was planned, what went out, what is expected from now on. Lines in the page's own colours.
const HEIGHT = 220;
const EDGE = { top: 12, right: 16, bottom: 26, left: 52 };
const MINUTE = 60_000;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * MINUTE);
const SECONDS = [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000);

const points = { type: Array, default: () => [] };

export function counts(most, wanted = 4) {
  const raw = Math.max(1, most / wanted);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= raw));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

export function times(from, until, wanted) {
  const step = [...SECONDS, ...STEPS].find((one) => (until - from) / one <= wanted) ?? STEPS.at(-1);
  // From the viewer's own midnight, so that a day begins at zero and not at the offset of their timezone.
  const midnight = new Date(from).setHours(0, 0, 0, 0);
  const first = midnight + Math.ceil((from - midnight) / step) * step;
  const found = [];
  for (let at = first; at <= until; at += step) found.push(at);
  return { step, found };
}

export function valueAt(points, at) {
  if (!points.length || at < points[0][0] || at > points.at(-1)[0]) return null;
  const next = points.findIndex(([time]) => time >= at);
  if (next === 0) return points[0][1];
  const [[t0, v0], [t1, v1]] = [points[next - 1], points[next]];
  return v0 + ((v1 - v0) * (at - t0)) / (t1 - t0 || 1);
}

export default {
  template: `
    <figure class="course" ref="box">
      <svg :width="width" :height="height" role="img" :aria-label="label" @pointermove="look" @pointerleave="at = null">
        <g class="course-grid">
          <g v-for="tick in rows" :key="'y' + tick">
            <line :x1="left" :x2="width - right" :y1="y(tick)" :y2="y(tick)"/>
            <text :x="left - 8" :y="y(tick) + 4" text-anchor="end">{{ tick.toLocaleString() }}</text>
          </g>
          <text v-for="tick in columns" :key="'x' + tick.at" :x="x(tick.at)" :y="height - 8" text-anchor="middle">{{ tick.words }}</text>
        </g>
        <path v-if="area" class="course-area" :d="area"/>
        <path v-if="planned.length" class="course-planned" :d="line(planned)"/>
        <path v-if="expected.length" class="course-expected" :d="line(expected)"/>
        <path v-if="path" class="course-actual" :d="path"/>
        <line v-if="showNow" class="course-now" :x1="x(now)" :x2="x(now)" :y1="top" :y2="height - bottom"/>
        <line v-if="at" class="course-cross" :x1="x(at)" :x2="x(at)" :y1="top" :y2="height - bottom"/>
      </svg>
      <div v-if="at" class="course-tip" :style="{left: tipLeft + 'px'}" aria-hidden="true">
        <strong>{{ exact(at) }}</strong>
        <span v-if="read(planned) !== null">planned {{ read(planned) }}</span>
        <span v-if="at <= last && read(steps) !== null">sent {{ read(steps) }}</span>
        <span v-if="at > last && read(expected) !== null">expected {{ read(expected) }}</span>
      </div>
      <figcaption class="course-key">
        <span v-if="planned.length"><i class="key key--planned"></i>planned when accepted</span>
        <span><i class="key key--actual"></i>sent</span>
        <span v-if="expected.length"><i class="key key--expected"></i>expected from now</span>
      </figcaption>
    </figure>`,
  props: {
    planned: points, actual: points, expected: points, total: { type: Number, default: 1 },
    start: { type: Number, default: 0 }, now: { type: Number, default: 0 }, open: Boolean, label: String,
  },
  data: () => ({ width: 640, height: HEIGHT, at: null, ...EDGE }),
  computed: {
    last() {
      return this.open ? this.now : this.actual.at(-1)?.[0] ?? this.now;
    },
    steps() {
      // Level until the next one went out: a night is flat, not a slope.
      const found = [[this.start, 0]];
      for (const [at, sent] of this.actual) found.push([at, found.at(-1)[1]], [at, sent]);
      return this.open ? [...found, [Math.max(this.now, found.at(-1)[0]), found.at(-1)[1]]] : found;
    },
    until() {
      const ends = [this.planned, this.steps, this.expected].map((points) => points.at(-1)?.[0] ?? 0);
      return Math.max(...ends, this.start + 10_000);
    },
    rows() {
      return counts(this.total);
    },
    columns() {
      const wanted = Math.max(2, Math.floor((this.width - EDGE.left) / 90));
      const { step, found } = times(this.start, this.until, wanted);
      const style = step >= 1440 * MINUTE ? { weekday: "short", day: "numeric" }
        : step < MINUTE ? { hour: "2-digit", minute: "2-digit", second: "2-digit" } : { hour: "2-digit", minute: "2-digit" };
      const inside = (at) => this.x(at) > EDGE.left + 12 && this.x(at) < this.width - 20;
      const words = (at) => step < 1440 * MINUTE && step > 60 * MINUTE && new Date(at).getHours() === 0
        ? new Date(at).toLocaleDateString([], { weekday: "short", day: "numeric" }) : new Date(at).toLocaleString([], style);
      return found.filter(inside).map((at) => ({ at, words: words(at) }));
    },
    path() {
      return this.actual.length ? this.line(this.steps) : "";
    },
    area() {
      if (!this.actual.length) return "";
      return `${this.line(this.steps)}L${this.x(this.steps.at(-1)[0])},${this.y(0)}L${this.x(this.start)},${this.y(0)}Z`;
    },
    showNow() {
      return this.open && this.now >= this.start && this.now < this.until;
    },
    tipLeft() {
      return Math.min(Math.max(this.x(this.at), 70), this.width - 80);
    },
  },
  methods: {
    x(at) {
      return EDGE.left + ((at - this.start) / (this.until - this.start)) * (this.width - EDGE.left - EDGE.right);
    },
    y(sent) {
      return EDGE.top + (1 - sent / Math.max(1, this.total)) * (HEIGHT - EDGE.top - EDGE.bottom);
    },
    line(points) {
      return points.map(([at, sent], index) => `${index ? "L" : "M"}${this.x(at).toFixed(1)},${this.y(sent).toFixed(1)}`).join("");
    },
    look(event) {
      const share = (event.offsetX - EDGE.left) / (this.width - EDGE.left - EDGE.right);
      this.at = share >= 0 && share <= 1 ? this.start + share * (this.until - this.start) : null;
    },
    read(points) {
      const found = valueAt(points, this.at);
      return found === null ? null : Math.round(found).toLocaleString();
    },
    exact(at) {
      return new Date(at).toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
    },
  },
  mounted() {
    this.watcher = new ResizeObserver(([entry]) => (this.width = Math.max(260, Math.floor(entry.contentRect.width))));
    this.watcher.observe(this.$refs.box);
  },
  unmounted() {
    this.watcher.disconnect();
  },
};
