// The books: a tab for all effects, for each service, for tables, and for requests.

const TITLES = { email: "Inbox", payments: "Payments", database: "Row changes", jobs: "Jobs" };
const NOTHING = {
  email: "No mail yet.", payments: "No charge yet.", database: "No row was changed yet.",
  jobs: "No job yet.", requests: "Nobody has asked for anything yet.", tables: "This table has no rows.",
};

const SINCE = { name: "At", width: "5rem", text: (row) => timeOf(row.at_s), kind: "quiet", spare: true };
const NUMBER = { name: "#", width: "3.2rem", text: (row) => number(row.number), kind: "n quiet" };
const WHAT = { name: "What", width: "minmax(0, 3fr)", text: (row) => row.what };
const WHO = { name: "Who", width: "minmax(0, 2fr)", text: (row) => row.who };
const KEY = { name: "Key", width: "minmax(0, 1.4fr)", text: (row) => row.key, kind: "code", spare: true };
const NOTE = {
  name: "Note", width: "minmax(0, 1.2fr)",
  text: (row) => [row.same_as ? `same as ${number(row.same_as)}` : "", row.state].filter(Boolean).join(", "),
  look: (row) => (row.same_as ? "again" : ""),
};
const WHERE = { name: "Service", width: "5.2rem", text: (row) => row.service, spare: true };

const REQUEST_COLUMNS = [
  NUMBER, SINCE,
  { name: "Request", width: "minmax(0, 1.5fr)", text: (row) => `${row.service}.${row.operation}` },
  KEY,
  { name: "Answer", width: "4.2rem", text: (row) => (row.status === null ? "" : String(row.status)), kind: "n" },
  {
    name: "Outcome", width: "minmax(0, 2.4fr)", text: (row) => row.outcome,
    look: (row) => ({ done: "quiet", "a repeat: answered as before": "quiet" }[row.outcome] ?? "warn"),
  },
];

const NARROW = matchMedia("(max-width: 640px)");

/** The columns for which there is room; what the others say is in the detail. */
function fitting(columns) {
  return NARROW.matches ? columns.filter((one) => !one.spare) : columns;
}

class Books {
  constructor() {
    this.tab = "all";
    this.state = null;
    this.detail = new DetailView({
      goTo: (at) => this.goTo(at),
      back: () => this.list.body.focus(),
    });
    this.list = new List(byId("list"), {
      chosen: (row) => this.choose(row),
      enter: () => this.detail.focus(),
    });
    byId("tabs").addEventListener("keydown", (event) => this.tabKey(event));
    byId("filter").addEventListener("input", () => {
      this.list.total = 0;
      this.list.fresh = true;
      this.list.at = -1;
      this.list.body.scrollTop = 0;
      this.refresh();
    });
    NARROW.addEventListener("change", () => {
      if (this.state) this.open(this.tab, true);
    });
    byId("table-name").addEventListener("change", () => this.open("tables"));
  }

  tabs() {
    const { services, effects, requests } = this.state;
    const made = [["all", "All effects", effects]];
    for (const one of services) made.push([one.name, TITLES[one.name] ?? one.name, one.effects]);
    if (services.some((one) => one.has_tables)) made.push(["tables", "Tables", null]);
    made.push(["requests", "Requests", requests]);
    return made;
  }

  async show(state) {
    this.state = state;
    const tabs = this.tabs();
    const key = tabs.map(([id]) => id).join();
    if (byId("tabs").dataset.key !== key) {
      byId("tabs").dataset.key = key;
      byId("tabs").replaceChildren(...tabs.map(([id, title]) => {
        const made = button("tab", "", () => this.open(id));
        made.id = `tab-${id}`;
        made.setAttribute("role", "tab");
        made.setAttribute("aria-controls", "panel");
        made.append(make("span", "", title), make("span", "number", ""));
        return made;
      }));
      this.use();
    }
    for (const [id, , how] of tabs) {
      setText(byId(`tab-${id}`).lastChild, how === null ? "" : number(how));
    }
    await this.refresh();
  }

  open(tab, anew = tab !== this.tab || tab === "tables") {
    this.tab = tab;
    if (anew) this.use();
    return this.refresh();
  }

  /** The books of the tab, empty until they are asked for. */
  use() {
    for (const one of byId("tabs").children) {
      const mine = one.id === `tab-${this.tab}`;
      one.setAttribute("aria-selected", String(mine));
      one.tabIndex = mine ? 0 : -1;
    }
    byId("panel").setAttribute("aria-labelledby", `tab-${this.tab}`);
    const tables = this.tab === "tables";
    byId("table-choice").hidden = !tables;
    byId("filter-box").hidden = tables;
    this.detail.clear();
    this.list.use(tables ? this.tableBooks() : this.tab === "requests" ? this.requestBooks() : this.effectBooks());
  }

  effectBooks() {
    const all = this.tab === "all";
    return {
      label: all ? "All effects, the newest first" : `${TITLES[this.tab] ?? this.tab}, the newest first`,
      columns: fitting([NUMBER, SINCE, ...(all ? [WHERE] : []), WHAT, WHO, KEY, NOTE]),
      least: 0,
      none: NOTHING[this.tab] ?? "Nothing has happened yet.",
      ask: (start, limit) => get("/api/effects", {
        service: all ? "" : this.tab, q: byId("filter").value, start, limit,
      }),
    };
  }

  requestBooks() {
    return {
      label: "Requests, the newest first",
      columns: fitting(REQUEST_COLUMNS),
      least: 0,
      none: NOTHING.requests,
      ask: (start, limit) => get("/api/requests", { q: byId("filter").value, start, limit }),
    };
  }

  tableBooks() {
    const table = byId("table-name").value;
    return {
      label: `Rows of ${table} as they are now`,
      columns: [],
      least: 0,
      none: table ? NOTHING.tables : "There is no table yet.",
      newest: false,
      ask: async (start, limit) => {
        if (!table) return { total: 0, start: 0, rows: [] };
        const told = await get(`/api/tables/${encodeURIComponent(table)}`, { start, limit });
        const key = told.columns.join("\n");
        if (this.list.grid.dataset.columns !== key || !this.list.columns.length) {
          this.list.grid.dataset.columns = key;
          this.list.columnsAre(told.columns.map((name, at) => ({
            name, width: "minmax(0, 1fr)", text: (row) => row[at] ?? "NULL",
            look: (row) => (row[at] === null ? "quiet" : ""),
          })), told.columns.length * 110);
        }
        return told;
      },
    };
  }

  async refresh() {
    try {
      if (this.tab === "tables") await this.findTables();
      await this.list.load(true);
      await this.reload();
      this.trouble("");
    } catch (wrong) {
      this.trouble(wrong.message);
      if (wrong instanceof TypeError) throw wrong; // nobody answered
    }
    this.tellCount();
  }

  async findTables() {
    const { tables } = await get("/api/tables");
    const before = byId("table-name").value;
    setOptions(byId("table-name"), tables.map((name) => [name, name]));
    if (byId("table-name").value !== before) this.use();
  }

  /** What is chosen may be another thing now, or gone. */
  async reload() {
    const { what } = this.detail;
    if (!what) return;
    if (this.tab === "tables" || this.tab === "requests") return;
    if (what.number > this.state.effects) this.detail.clear();
    else await this.detail.effect(what.number);
  }

  tellCount() {
    const filtered = byId("filter").value.trim() && this.tab !== "tables";
    const word = { requests: "request", tables: "row" }[this.tab] ?? "effect";
    let text = count(this.list.total, word);
    if (filtered) text += this.list.total === 1 ? " fits" : " fit";
    else if (this.tab === "requests" && this.state.requests > this.state.requests_kept) {
      text = `the last ${number(this.state.requests_kept)} of ${count(this.state.requests, word)}`;
    }
    setText(byId("count"), text);
  }

  trouble(words) {
    const told = [words, ...this.state.services.map((one) => one.trouble)].filter(Boolean);
    setText(byId("notice"), [...new Set(told)].join(" "));
    byId("notice").hidden = !told.length;
  }

  choose(row) {
    if (this.tab === "tables") {
      this.detail.row(byId("table-name").value, this.list.columns.map((one) => one.name), row);
    } else if (this.tab === "requests") this.detail.request(row);
    else this.detail.effect(row.number).catch((wrong) => this.trouble(wrong.message));
  }

  /** Shows an effect among all of them. */
  async goTo(at) {
    byId("filter").value = "";
    await this.open("all");
    await this.list.go(this.list.turned(at - 1));
    this.detail.focus();
  }

  tabKey(event) {
    const tabs = [...byId("tabs").children];
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.focus();
    tab.click();
  }
}
