// A number's pacing: what it sent at the left of now, what should go at the right; rests, cool-downs and closed hours behind.
import { clock, exact, relative } from "/static/times.js";

const HEIGHT = 112;
const MIDDLE = 46;
const SHOWN = 14; // Dots to show on each side, if the time they span is not too long.
const SHORTEST = 12_000;
const LONGEST = 20 * 60_000;
const TICKS = [2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];

export default {
  template: `
    <figure class="timeline" ref="box">
      <svg :width="width" :height="height" role="img" :aria-label="label">
        <g v-for="band in bands" :key="band.kind + band.from">
          <rect :class="'band-' + band.kind" :x="x(band.from)" :width="Math.max(0, x(band.until) - x(band.from))" y="14" height="64" />
          <text v-if="x(band.until) - x(band.from) > 7 * band.text.length" class="band-text" :x="(x(band.from) + x(band.until)) / 2" y="27" text-anchor="middle">{{ band.text }}</text>
        </g>
        <line class="line" x1="0" :x2="width" :y1="middle" :y2="middle" />
        <g class="grid">
          <g v-for="tick in ticks" :key="tick.at">
            <line :x1="x(tick.at)" :x2="x(tick.at)" :y1="middle - 4" :y2="middle + 4" />
            <text :x="x(tick.at)" y="94" text-anchor="middle">{{ tick.text }}</text>
          </g>
        </g>
        <circle v-for="at in sends" :key="'s' + at" class="dot-sent" :cx="x(at)" :cy="middle" r="5"><title>sent {{ exact(at) }}</title></circle>
        <circle v-for="(at, index) in slots" :key="'f' + index" :class="index ? 'dot-slot' : 'dot-next'" :cx="x(at)" :cy="middle" r="5">
          <title>{{ index ? 'expected' : 'next slot' }} {{ exact(at) }}</title></circle>
        <line class="now" :x1="x(now)" :x2="x(now)" y1="10" y2="82" />
        <text class="now-text" :x="x(now)" y="8" text-anchor="middle">now</text>
      </svg>
      <figcaption class="timeline-key">
        <span><i class="dot dot--sent"></i>sent</span><span><i class="dot dot--next"></i>next slot</span><span><i class="dot dot--slot"></i>expected</span>
        <span v-if="pacing.burstLimit">burst {{ pacing.burstCount }} of {{ pacing.burstLimit }}</span>
        <span v-if="pacing.busy">a message is on its way</span>
      </figcaption>
    </figure>`,
  props: { pacing: Object },
  data() {
    return { width: 600, height: HEIGHT, middle: MIDDLE, now: this.pacing.now, offset: 0 };
  },
  watch: {
    // The server's clock decides; ours only moves the line between two looks.
    "pacing.now": { immediate: true, handler(now) { this.offset = now - Date.now(); } },
  },
  computed: {
    half() {
      const { sends, slots } = this.pacing;
      const past = sends.length ? this.now - sends[Math.max(0, sends.length - SHOWN)] : 0;
      const future = slots.length ? slots[Math.min(SHOWN, slots.length) - 1] - this.now : 0;
      const wanted = Math.min(LONGEST, Math.max(SHORTEST, Math.min(past, 4 * Math.max(future, SHORTEST)), future));
      return TICKS.map((tick) => tick * 6).find((size) => size >= wanted) || LONGEST;
    },
    from() {
      return this.now - this.half;
    },
    until() {
      return this.now + this.half;
    },
    sends() {
      return this.pacing.sends.filter((at) => at >= this.from);
    },
    slots() {
      return this.pacing.slots.filter((at) => at <= this.until).map((at) => Math.max(at, this.now));
    },
    ticks() {
      const step = TICKS.find((size) => (2 * this.half) / size <= (this.width < 420 ? 4 : 8)) || 600_000;
      const first = Math.ceil(this.from / step) * step;
      const found = [];
      for (let at = first; at <= this.until; at += step) {
        const x = this.x(at);
        if (x > 30 && x < this.width - 30) found.push({ at, text: this.tickText(at, step) });
      }
      return found;
    },
    bands() {
      return [...this.closed(), ...this.rests(), ...this.limits()];
    },
    label() {
      const { sends, slots } = this.pacing;
      const last = sends.length ? `last sent ${relative(sends[sends.length - 1], this.now)}` : "nothing sent yet";
      return `Pacing: ${last}, ${slots.length ? `next slot ${relative(slots[0], this.now)}` : "nothing waits"}`;
    },
  },
  methods: {
    exact,
    x(at) {
      const share = (at - this.from) / (2 * this.half);
      return Math.min(1, Math.max(0, share)) * this.width;
    },
    tickText(at, step) {
      const second = step < 60_000 ? "2-digit" : undefined;
      return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second, hourCycle: "h23" });
    },
    closed() {
      const { open } = this.pacing;
      if (!open) return [];
      const bands = [];
      let at = this.now;
      for (const stretch of open) {
        if (stretch.begin > at) bands.push({ kind: "closed", from: at, until: stretch.begin, text: `closed until ${clock(stretch.begin, this.now)}` });
        at = stretch.end;
      }
      bands.push({ kind: "closed", from: at, until: at + 86_400_000, text: "closed" });
      return bands.filter((band) => band.from < this.until && band.until > this.from);
    },
    // A gap as long as the rest after a burst is one.
    rests() {
      const all = [...this.pacing.sends, ...this.slots];
      const rest = this.pacing.burstCooldownMs;
      if (!rest || !this.pacing.burstLimit) return [];
      return all.slice(1)
        .map((at, index) => ({ kind: "rest", from: all[index], until: at, text: "rest" }))
        .filter((band) => band.until - band.from >= rest && band.until - band.from < 3 * rest && band.until > this.from);
    },
    limits() {
      const { kind, until } = this.pacing.restriction;
      const text = { COOLDOWN: "cool-down", TIME_LOCKED: "no new chats", CAPPED: "no new chats", QUARANTINED: "quarantined" }[kind];
      return text ? [{ kind: "limit", from: this.now, until: until || this.until, text }] : [];
    },
    tick() {
      this.now = Date.now() + this.offset;
    },
  },
  mounted() {
    this.observer = new ResizeObserver(([entry]) => (this.width = Math.max(240, entry.contentRect.width)));
    this.observer.observe(this.$refs.box);
    this.timer = setInterval(() => document.hidden || this.tick(), 250);
  },
  unmounted() {
    this.observer.disconnect();
    clearInterval(this.timer);
  },
};
