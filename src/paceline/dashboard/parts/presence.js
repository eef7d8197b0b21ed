// Tells the server whether anybody can see this tab, since a hidden one is not refreshed; and when the viewer's day began.
const midnight = () => new Date().setHours(0, 0, 0, 0);

export default {
  template: "<span hidden></span>",
  mounted() {
    this.tell = () => this.$emit("presence", { seen: !document.hidden, midnight: midnight() });
    document.addEventListener("visibilitychange", this.tell);
    this.hourly = setInterval(this.tell, 3600000);
    this.tell();
  },
  unmounted() {
    document.removeEventListener("visibilitychange", this.tell);
    clearInterval(this.hourly);
  },
};
