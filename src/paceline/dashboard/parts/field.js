// A labelled field of the browser's own kind. The server hears of a change; what is being typed stays the browser's.
let count = 0;

export default {
  template: `
    <div class="field" :class="{'field--fault': fault}">
      <label :for="id" :class="{'sr-only': labelHidden}">{{ label }}</label>
      <select v-if="kind === 'select'" :id="id" v-bind="attributes" v-model="own" @change="tell" :aria-describedby="described">
        <option v-for="option in options" :key="option.value" :value="option.value">{{ option.label }}</option>
      </select>
      <textarea v-else-if="kind === 'textarea'" :id="id" dir="auto" v-bind="attributes" v-model="own" @input="soon"
        @change="tell" :aria-describedby="described" :aria-invalid="!!fault"></textarea>
      <input v-else :id="id" :type="kind" dir="auto" v-bind="attributes" v-model="own" @input="soon" @change="tell"
        :aria-describedby="described" :aria-invalid="!!fault">
      <p v-if="fault" :id="id + '-fault'" class="field-fault" role="alert">{{ fault }}</p>
      <p v-else-if="hint" :id="id + '-hint'" class="field-hint">{{ hint }}</p>
    </div>`,
  // Named, so that the browser's own event of that name does not pass for ours.
  emits: ["change"],
  props: {
    label: String, kind: String, value: String, hint: String, fault: String, labelHidden: Boolean,
    options: Array, attributes: Object, undone: Number,
  },
  data() {
    return { own: this.value, id: `field-${++count}`, timer: 0, told: this.value };
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
      return this.fault ? `${this.id}-fault` : this.hint ? `${this.id}-hint` : null;
    },
  },
  methods: {
    soon() {
      clearTimeout(this.timer);
      this.timer = setTimeout(this.tell, 250);
    },
    tell() {
      clearTimeout(this.timer);
      if (String(this.own) === this.told) return;
      this.told = String(this.own);
      this.$emit("change", this.told);
    },
  },
};
