// Light or dark: as the system says, unless somebody chose. Runs before the page is drawn, so nothing flashes.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function apply() {
    const chosen = localStorage.getItem("theme");
    root.dataset.theme = chosen || (system.matches ? "dark" : "light");
  }

  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const other = root.dataset.theme === "dark" ? "light" : "dark";
    const isSystem = other === (system.matches ? "dark" : "light");
    isSystem ? localStorage.removeItem("theme") : localStorage.setItem("theme", other);
    apply();
  });
})();
