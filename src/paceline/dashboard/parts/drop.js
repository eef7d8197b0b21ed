// A place to drop a file on, or to choose one with the keyboard. The file goes to the dashboard, not through the socket.
// Uploads of a page are counted: what is told of one may come after the next has begun.
let turns = 0;

export default {
  template: `
    <div class="drop" :class="{'drop--over': over, 'drop--busy': busy, 'drop--small': small}" @dragover.prevent="over = true"
      @dragleave="over = false" @drop.prevent="dropped">
      <label class="drop-label">
        <input type="file" class="sr-only" :accept="accept" :disabled="busy && !replaces" @change="chosen">
        <span><strong>{{ busy ? "Reading…" : label }}</strong> <span v-if="hint && !busy" class="quiet">{{ hint }}</span></span>
      </label>
      <p v-if="fault" class="field-fault" role="alert">{{ fault }}</p>
    </div>`,
  emits: ["begun", "shown", "failed"],
  props: { label: String, hint: String, accept: String, most: Number, small: Boolean, replaces: Boolean, url: String, why: String },
  data: () => ({ over: false, turn: 0, aborter: null, fault: "" }),
  computed: {
    busy() {
      return this.turn > 0;
    },
  },
  watch: {
    why(words) {
      this.fault = words;
    },
  },
  methods: {
    dropped(event) {
      this.over = false;
      if (event.dataTransfer.files.length) this.send(event.dataTransfer.files[0]);
    },
    chosen(event) {
      const [file] = event.target.files;
      // So that the same one can be chosen again.
      event.target.value = "";
      if (file) this.send(file);
    },
    async send(file) {
      if (this.busy && !this.replaces) {
        this.fault = `${file.name} was not taken, because another file was being read. Drop it again.`;
        return;
      }
      if (this.aborter) this.aborter.abort();
      const aborter = new AbortController();
      const turn = ++turns;
      this.aborter = aborter;
      this.turn = turn;
      this.fault = "";
      this.$emit("begun", { turn, name: file.name });
      const fault = await this.post(file, turn, aborter.signal);
      // Another one has replaced it.
      if (this.turn !== turn) return;
      this.turn = 0;
      this.aborter = null;
      if (fault) {
        this.fault = fault;
        this.$emit("failed", { turn });
      } else {
        this.$emit("shown", { turn, address: file.type.startsWith("image/") ? URL.createObjectURL(file) : "" });
      }
    },
    async post(file, turn, signal) {
      if (file.size > this.most) return `${file.name} is too large: at most ${Math.round(this.most / 1048576)} MB.`;
      const form = new FormData();
      form.append("file", file, `${turn}:${file.name}`);
      try {
        const answer = await fetch((window.path_prefix || "") + this.url, { method: "POST", body: form, signal });
        // Whoever is no longer logged in is led to the door, which takes no file and answers 200.
        if (answer.redirected) return "Your login has ended, and the file was not taken. Load the page again.";
        return answer.ok ? "" : `The dashboard did not take it (${answer.status}). Load the page again.`;
      } catch {
        return "The dashboard cannot be reached. Try again.";
      }
    },
  },
};
