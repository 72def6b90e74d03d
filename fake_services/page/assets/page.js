// Puts the page together.

function themes() {
  const toggle = byId("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("chaoskit-theme");
  } catch { /* without storage the choice lasts as long as the page */ }
  const apply = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    toggle.setAttribute("aria-pressed", String(dark));
  };
  toggle.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("chaoskit-theme", chosen);
    } catch { /* as above */ }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

themes();
const books = new Books();
const controls = new Controls((state) => {
  controls.show(state);
  books.show(state);
});
follow(async (state) => {
  controls.show(state);
  await books.show(state);
});
