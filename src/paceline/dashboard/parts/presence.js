// Tells the server whether anybody can see this tab: a hidden one is not refreshed.
export default {
  template: "<span hidden></span>",
  mounted() {
    this.tell = () => this.$emit("presence", !document.hidden);
    document.addEventListener("visibilitychange", this.tell);
    if (document.hidden) this.tell();
  },
  unmounted() {
    document.removeEventListener("visibilitychange", this.tell);
  },
};
