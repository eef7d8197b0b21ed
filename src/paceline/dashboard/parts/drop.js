// A place to drop a file on, or to choose one with the keyboard. The file goes to the dashboard, not through the socket.
export default {
  template: `
    <div class="drop" :class="{'drop--over': over, 'drop--busy': busy, 'drop--small': small}" @dragover.prevent="over = true"
      @dragleave="over = false" @drop.prevent="dropped">
      <label class="drop-label">
        <input ref="input" type="file" class="sr-only" :accept="accept" :disabled="busy" @change="chosen">
        <span><strong>{{ busy ? "Reading…" : label }}</strong> <span v-if="hint && !busy" class="quiet">{{ hint }}</span></span>
      </label>
      <p v-if="fault" class="field-fault" role="alert">{{ fault }}</p>
    </div>`,
  emits: ["shown"],
  props: { label: String, hint: String, accept: String, most: Number, small: Boolean, url: String, why: String },
  data: () => ({ over: false, busy: false, fault: "" }),
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
      if (event.target.files.length) this.send(event.target.files[0]);
    },
    async send(file) {
      if (this.busy) return;
      this.fault = "";
      if (file.size > this.most) {
        this.fault = `${file.name} is too large: at most ${Math.round(this.most / 1048576)} MB.`;
        return;
      }
      const form = new FormData();
      form.append("file", file, file.name);
      this.busy = true;
      try {
        const answer = await fetch((window.path_prefix || "") + this.url, { method: "POST", body: form });
        // Whoever is no longer logged in is led to the door, which takes no file and answers 200.
        if (answer.redirected) this.fault = "Your login has ended, and the file was not taken. Load the page again.";
        else if (!answer.ok) this.fault = `The dashboard did not take it (${answer.status}). Load the page again.`;
        else {
          const address = file.type.startsWith("image/") ? URL.createObjectURL(file) : "";
          this.$emit("shown", { name: file.name, size: file.size, address });
        }
      } catch {
        this.fault = "The dashboard cannot be reached. Try again.";
      } finally {
        this.busy = false;
        this.$refs.input.value = "";
      }
    },
  },
};
