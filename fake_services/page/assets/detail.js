// What is chosen, in full: an effect with the mail, charge or job that it made, a request, a row.

class DetailView {
  /** goTo(number): shows the effect with this number. back(): to the list. */
  constructor({ goTo, back }) {
    this.goTo = goTo;
    this.section = byId("detail");
    this.shown = "";
    this.section.addEventListener("keydown", (event) => {
      if (event.key === "Escape") back();
    });
  }

  clear() {
    this.what = null;
    this.put("", "Nothing is chosen", [make("p", "quiet",
      "Choose a line by a click or by the arrow keys; Enter comes here, Esc goes back.")]);
  }

  focus() {
    this.section.focus();
  }

  /** Puts elements in place of what is shown, if they are about something else. */
  put(key, title, elements) {
    if (key && key === this.shown) return;
    this.shown = key;
    byId("detail-title").textContent = title;
    byId("detail-body").replaceChildren(...elements);
  }

  async effect(which) {
    const wanted = { number: which };
    this.what = wanted;
    const told = await get(`/api/effects/${which}`);
    if (this.what !== wanted) return;
    const { line } = told;
    const elements = [];
    if (line.same_as) {
      const note = make("p", "again", "The same as ");
      note.append(button("link", `effect ${number(line.same_as)}`, () => this.goTo(line.same_as)),
        make("span", "", ": equal in every field that its caller asked for."));
      elements.push(note);
    }
    elements.push(pairs([
      ["Effect", `${number(line.number)}, ${line.service}.${line.kind}`],
      ["Seen at", timeOf(line.at_s)],
      ["Request", line.request === null ? "none: found in the database" : number(line.request)],
      ["Key", line.key || "none"],
      ["Id", line.ref],
      ["State", line.state],
    ]));
    for (const text of told.texts) elements.push(...textParts(text));
    if (told.facts.length) elements.push(make("h4", "", "As the service has it now"), pairs(told.facts));
    if (told.fields.length) elements.push(make("h4", "", "As it was asked for"), pairs(told.fields));
    if (told.left_out) elements.push(make("p", "quiet", `And ${count(told.left_out, "more field")}.`));
    const who = line.who ? ` to ${line.who}` : "";
    this.put(JSON.stringify(told), `${line.what}${who}`, elements);
  }

  request(row) {
    this.what = row;
    const elements = [pairs([
      ["Request", number(row.number)],
      ["Seen at", timeOf(row.at_s)],
      ["Key", row.key || "none"],
      ["Answer", row.status === null ? "none yet" : String(row.status)],
      ["Outcome", row.outcome],
      ["Effects", number(row.effects)],
    ])];
    if (row.effect) elements.push(button("plain", `Show effect ${number(row.effect)}`, () => this.goTo(row.effect)));
    this.put(JSON.stringify(row), `${row.service}.${row.operation}`, elements);
  }

  row(table, columns, row) {
    this.what = row;
    const told = columns.map((name, at) => [name, row[at] ?? "NULL"]);
    this.put(JSON.stringify([table, told]), `A row of ${table}`, [pairs(told)]);
  }
}


function pairs(told) {
  const list = make("dl", "pairs");
  for (const [name, text] of told) {
    if (text !== "") list.append(make("dt", "", name), make("dd", "", text));
  }
  return list;
}

function textParts(text) {
  const box = make("pre", "", text.text);
  box.tabIndex = 0;
  box.setAttribute("aria-label", text.title);
  return [make("h4", "", text.title), box];
}
