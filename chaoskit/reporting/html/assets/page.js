// Puts the page together.

function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  forgetColours();
}

function themes(redraw) {
  const button = byId("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("chaoskit-theme");
  } catch { /* a page of its own origin has no storage: the choice lasts as long as the page */ }
  const apply = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    useTheme(dark ? "dark" : "light");
    button.setAttribute("aria-pressed", String(dark));
    redraw();
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("chaoskit-theme", chosen);
    } catch { /* as above */ }
    apply();
  });
  system.addEventListener("change", apply);
  return apply;
}

function copyButtons() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button.parentElement.querySelector("code").textContent, button);
  });
}

const PAPER_PX = 688; // A4 without its margins

function printing(strip, legend, lists) {
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    useTheme("light");
    lists.forEach((list) => list.print(true));
    legend();
    strip.fit(PAPER_PX);
    strip.drawNow();
  });
  window.addEventListener("afterprint", () => {
    useTheme(before ?? "light");
    lists.forEach((list) => list.print(false));
    legend();
    strip.fit();
  });
}

async function start() {
  const drawings = [];
  const applyTheme = themes(() => drawings.forEach((draw) => draw()));
  applyTheme();
  copyButtons();
  if (typeof DecompressionStream === "undefined") {
    byId("old").hidden = false;
    return;
  }
  const data = await unpack("data");
  const trials = data.trials.map((row, at) => trialOf(row, at, data.kinds));
  const marks = data.map.marks.map((row) => markOf(row, data.strings));
  const view = new TrialView(trials, new Blocks(), data.again);
  const open = (number) => view.show(number);
  const map = new KillMap(byId("map-strip"), data, marks, trials, (stop) => {
    if (stop.trials.length) open(stop.trials[0]); else say("This point was not tried");
  });
  if (!marks.length) {
    for (const id of ["map-tools", "map-hint"]) byId(id).hidden = true;
    if (!data.map.run.rows.length) byId("map-strip").hidden = true;
  }
  const legend = fillLegend(byId("legend"), marks, data.kinds);
  drawings.push(() => map.strip.draw(), legend, () => view.strip?.draw());
  const table = trialsTable(trials, (trial) => open(trial.index));
  const duplicates = duplicatesTable(data.duplicates, trials, open);
  byId("map-in").addEventListener("click", () => map.strip.zoom(0.5));
  byId("map-out").addEventListener("click", () => map.strip.zoom(2));
  byId("map-fit").addEventListener("click", () => map.strip.whole());
  byId("map-bad").disabled = !marks.some((mark) => mark.outcome >= FLAKY);
  byId("map-bad").addEventListener("click", () => {
    map.strip.go(map.strip.seek(1, (stop) => stop.bad));
    map.strip.tipAtCursor();
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("button.open");
    if (opener) open(Number(opener.dataset.trial));
    const filter = event.target.closest("a.filter-trials");
    if (filter) {
      byId("trials-filter").value = filter.dataset.filter;
      table.apply();
    }
  });
  printing(map.strip, legend, [table.list, duplicates].filter(Boolean));
  const linked = /^#trial-(\d+)$/.exec(location.hash);
  if (linked) await open(Number(linked[1]) - 1);
  document.documentElement.dataset.ready = "yes";
}

start();
