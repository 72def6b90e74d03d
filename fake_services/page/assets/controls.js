// What can be done to the services: behaviours, clocks, landings, a reset.

class Controls {
  /** acted(state): the state after a deed. */
  constructor(acted) {
    this.acted = acted;
    setOptions(byId("b-kind"), Object.keys(GIVEN.kinds).map((kind) => [kind, kind]));
    for (const id of ["b-kind", "b-service", "b-operation", "b-which"]) {
      byId(id).addEventListener("change", () => this.compose());
    }
    byId("behave").addEventListener("submit", (event) => {
      event.preventDefault();
      const behaviour = byId("b-text").value.trim();
      this.act("/api/behaviours", { behaviour, on: true }, byId("b-wrong"), `${behaviour} is on`);
    });
    byId("move").addEventListener("submit", (event) => {
      event.preventDefault();
      const seconds = Number(byId("c-amount").value) * Number(byId("c-unit").value);
      const service = byId("c-service").value;
      this.act("/api/clock", { seconds, service }, byId("c-wrong"), `Moved on by ${span(seconds)}`);
    });
    byId("land").addEventListener("click", () => this.act("/api/land", {}, byId("b-wrong"), "They have landed"));
    byId("copy").addEventListener("click", () => this.copy());
    const sure = byId("sure");
    byId("reset").addEventListener("click", () => sure.showModal());
    byId("sure-no").addEventListener("click", () => sure.close());
    byId("sure-yes").addEventListener("click", async () => {
      sure.close();
      await this.act("/api/reset", {}, byId("b-wrong"), "All services are reset");
    });
  }

  async act(path, body, wrong, done) {
    wrong.textContent = "";
    try {
      this.acted(await post(path, body));
      say(done);
    } catch (problem) {
      wrong.textContent = problem.message;
    }
  }

  show(state) {
    this.state = state;
    this.showNumbers();
    this.showSwitches();
    this.showForm();
    this.showClocks();
    const waiting = state.services.reduce((sum, one) => sum + one.waiting, 0);
    byId("landing").hidden = !waiting;
    setText(byId("landing-words"), `${count(waiting, "request")} cut off unanswered and not carried out yet.`);
    const lines = state.services.flatMap((one) => Object.entries(one.environment));
    setText(byId("environment"), lines.map(([name, value]) => `export ${name}=${value}`).join("\n"));
  }

  showNumbers() {
    const { effects, same_again: again, requests, services, behaviours } = this.state;
    const on = behaviours.filter((one) => one.on);
    setText(byId("n-effects"), number(effects));
    setText(byId("n-effects-note"), again ? `${number(again)} the same as an earlier one` : "none twice");
    byId("n-effects-note").classList.toggle("again", again > 0);
    setText(byId("n-requests"), number(requests));
    setText(byId("n-requests-note"), `at ${count(services.length, "service")}`);
    setText(byId("n-behaviours"), number(on.length));
    setText(byId("n-behaviours-note"), on.length ? `of ${number(behaviours.length)} in the list` : "the services behave");
    const moved = Math.max(0, ...services.map((one) => one.clock_s ?? 0));
    setText(byId("n-clocks"), moved ? `+${span(moved)}` : "now");
    setText(byId("n-clocks-note"), moved ? "the one that is furthest on" : "real time");
  }

  showSwitches() {
    const { behaviours } = this.state;
    const key = JSON.stringify(behaviours);
    const list = byId("behaviours");
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    const focused = document.activeElement?.dataset.behaviour;
    list.replaceChildren(...behaviours.map((one) => this.switchOf(one)));
    if (!behaviours.length) list.append(make("li", "quiet", "None was switched on yet."));
    if (focused) [...list.querySelectorAll("[role=switch]")].find((one) => one.dataset.behaviour === focused)?.focus();
  }

  switchOf(one) {
    const item = make("li", one.on ? "on" : "");
    const flip = button("switch", "", () => this.act("/api/behaviours",
      { behaviour: one.behaviour, on: !one.on }, byId("b-wrong"), `${one.behaviour} is ${one.on ? "off" : "on"}`));
    flip.setAttribute("role", "switch");
    flip.setAttribute("aria-checked", String(one.on));
    flip.setAttribute("aria-label", one.behaviour);
    flip.dataset.behaviour = one.behaviour;
    const words = make("div", "words");
    words.append(make("code", "", one.behaviour), make("span", "quiet", one.meaning));
    if (one.on && one.past) words.append(make("span", "past", "That request has been: it meets none any more."));
    const forget = button("plain square", "×", () => this.act("/api/behaviours/forget",
      { behaviour: one.behaviour }, byId("b-wrong"), `${one.behaviour} is gone from the list`));
    forget.setAttribute("aria-label", `Remove ${one.behaviour}`);
    item.append(flip, words, forget);
    return item;
  }

  showForm() {
    const able = this.state.services.map((one) => one.behaves).filter(Boolean);
    const form = byId("behave");
    form.hidden = !able.length;
    const before = byId("b-service").value;
    setOptions(byId("b-service"), able.map((one) => [one.service, one.service]));
    if (!before && able.some((one) => one.service === "payments")) byId("b-service").value = "payments";
    this.compose();
  }

  /** The text of what is chosen, unless a person has written another one. */
  compose() {
    const mine = this.state.services.map((one) => one.behaves).find((one) => one?.service === byId("b-service").value);
    if (!mine) return;
    const kinds = Object.keys(GIVEN.kinds).filter((kind) => mine.kinds.includes(kind));
    setOptions(byId("b-kind"), kinds.map((kind) => [kind, kind]));
    setOptions(byId("b-operation"), [...Object.keys(mine.operations).map((name) => [name, name]), ["*", "any (*)"]]);
    const operation = byId("b-operation").value, which = byId("b-which").value;
    const counts = Object.values(mine.operations);
    const soFar = operation === "*" ? counts.reduce((sum, one) => sum + one, 0) : mine.operations[operation];
    const kind = byId("b-kind").value, { argument, meaning } = GIVEN.kinds[kind];
    const ordinal = which === "next" ? soFar + 1 : "*";
    const text = `${kind}${argument ? `:${argument}` : ""}@${mine.service}.${operation}#${ordinal}`;
    setText(byId("b-meaning"), `The request ${meaning}.`);
    const field = byId("b-text");
    if (document.activeElement !== field && this.composed !== text) field.value = text;
    this.composed = text;
  }

  showClocks() {
    const clocks = this.state.services.filter((one) => one.clock_s !== null);
    byId("clock").hidden = !clocks.length;
    setOptions(byId("c-service"), [["", "all clocks"], ...clocks.map((one) => [one.name, one.name])]);
    const moved = clocks.filter((one) => one.clock_s);
    const key = JSON.stringify(moved.map((one) => [one.name, one.clock_s]));
    if (byId("clocks").dataset.key === key) return;
    byId("clocks").dataset.key = key;
    const together = new Map();
    for (const one of moved) together.set(one.clock_s, [...(together.get(one.clock_s) ?? []), one.name]);
    byId("clocks").replaceChildren(...[...together].map(([ahead, names]) => (
      make("li", "", `${span(ahead)} ahead: ${names.join(", ")}`))));
  }

  async copy() {
    const text = byId("environment").textContent;
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(byId("environment"));
      words = "Selected: copy it";
    }
    byId("copy").textContent = words;
    byId("copy").addEventListener("blur", () => { byId("copy").textContent = "Copy"; }, { once: true });
    say(words);
  }
}
