// A labelled field of the browser's own kind. The server hears of a change; what is being typed stays the browser's.
let count = 0;
// The connection takes a million bytes in one piece and drops what is longer without a word.
const MOST_BYTES = 900_000;
const TOO_LONG = "Too long to be typed or pasted. Drop it as a file.";

export default {
  template: `
    <div class="field" :class="{'field--fault': wrong}">
      <label :for="id" :class="{'sr-only': labelHidden}">{{ label }}</label>
      <select v-if="kind === 'select'" :id="id" v-bind="attributes" v-model="own" @change="tell" :aria-describedby="described">
        <option v-for="option in options" :key="option.value" :value="option.value">{{ option.label }}</option>
      </select>
      <textarea v-else-if="kind === 'textarea'" :id="id" dir="auto" v-bind="attributes" v-model="own" @input="soon"
        @change="tell" :aria-describedby="described" :aria-invalid="!!wrong"></textarea>
      <input v-else :id="id" :type="kind" dir="auto" v-bind="attributes" v-model="own" @input="soon" @change="tell"
        :aria-describedby="described" :aria-invalid="!!wrong">
      <p v-if="wrong" :id="id + '-fault'" class="field-fault" role="alert">{{ wrong }}</p>
      <p v-else-if="hint" :id="id + '-hint'" class="field-hint">{{ hint }}</p>
    </div>`,
  // Named, so that the browser's own event of that name does not pass for ours.
  emits: ["change"],
  props: {
    label: String, kind: String, value: String, hint: String, fault: String, labelHidden: Boolean,
    options: Array, attributes: Object, undone: Number,
  },
  data() {
    return { own: this.value, id: `field-${++count}`, timer: 0, told: this.value, tooLong: false };
  },
  watch: {
    value(value) {
      // Our own words coming back must not overwrite what was typed since.
      if (value !== this.told) this.own = this.told = value;
    },
    // The server takes a change back: what is shown is what it says, again.
    undone() {
      this.own = this.told = this.value;
    },
  },
  computed: {
    described() {
      return this.wrong ? `${this.id}-fault` : this.hint ? `${this.id}-hint` : null;
    },
    wrong() {
      return this.tooLong ? TOO_LONG : this.fault;
    },
  },
  methods: {
    soon() {
      clearTimeout(this.timer);
      this.timer = setTimeout(this.tell, 250);
    },
    tell() {
      clearTimeout(this.timer);
      const words = String(this.own);
      this.tooLong = words.length > MOST_BYTES / 6 && new Blob([JSON.stringify(words)]).size > MOST_BYTES;
      // Too long, it counts as empty: what was there before must not stay in its place.
      const saying = this.tooLong ? "" : words;
      if (saying === this.told) return;
      this.told = saying;
      this.$emit("change", this.told);
    },
  },
};
