// A long table: only the rows in view are in the page. Sorted by its heads, moved through by keys.

const SPARE = 8, PRINT_MOST = 100;

class List {
  /**
   * host: the element to fill. label: its name. columns: {name, width, text(row), by?(row), kind?}.
   * rows. height: of a row. least: width below which it scrolls. open(row), moved(row).
   * look(row): a class for the row.
   */
  constructor(host, given) {
    Object.assign(this, { look: () => "", moved: () => {} }, given);
    this.host = host;
    this.all = this.rows;
    this.at = -1;
    this.grid = make("div", "grid");
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-label", given.label);
    this.grid.style.setProperty("--columns", this.columns.map((one) => one.width).join(" "));
    if (given.least) this.grid.style.setProperty("--least", `${given.least}px`);
    this.body = make("div", "body");
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "rowgroup");
    this.body.setAttribute("aria-label", `${given.label}: arrow keys move, Enter opens`);
    this.space = make("div", "space");
    this.space.setAttribute("role", "presentation");
    this.body.append(this.space);
    if (!given.headless) this.grid.append(this.head());
    this.grid.append(this.body);
    host.replaceChildren(this.grid);
    this.body.addEventListener("scroll", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.space.addEventListener("click", (event) => {
      const line = event.target.closest(".line");
      if (!line) return;
      this.go(Number(line.dataset.at));
      this.open(this.rows[this.at]);
    });
    new ResizeObserver(() => this.draw()).observe(this.body);
    this.show(this.all);
  }

  head() {
    const head = make("div", "head");
    head.setAttribute("role", "row");
    this.heads = this.columns.map((column) => {
      const cell = make("div", column.kind === "n" ? "n" : "");
      cell.setAttribute("role", "columnheader");
      const button = make("button", "", column.name);
      button.type = "button";
      button.addEventListener("click", () => this.sort(column));
      cell.append(button);
      head.append(cell);
      return cell;
    });
    return head;
  }

  sort(column) {
    this.down = this.sorted === column ? !this.down : column.kind === "n";
    this.sorted = column;
    this.columns.forEach((one, at) => {
      const mine = one === column;
      this.heads[at].setAttribute("aria-sort", mine ? (this.down ? "descending" : "ascending") : "none");
      if (mine) this.heads[at].firstChild.dataset.dir = this.down ? "down" : "up";
      else delete this.heads[at].firstChild.dataset.dir;
    });
    this.show(this.rows);
  }

  /** Shows these rows, in the order that was chosen. */
  show(rows) {
    this.rows = rows;
    if (this.sorted) {
      const by = this.sorted.by ?? this.sorted.text;
      const sign = this.down ? -1 : 1;
      this.rows = [...rows].sort((one, other) => {
        const [a, b] = [by(one), by(other)];
        return sign * (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      });
    }
    this.at = -1;
    this.grid.setAttribute("aria-rowcount", this.rows.length);
    this.space.style.height = `${Math.max(1, this.rows.length) * this.height}px`;
    this.body.scrollTop = 0;
    this.draw();
  }

  line(row, at) {
    const line = make("div", `line ${this.look(row)} ${at === this.at ? "at" : ""}`);
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", at + 1);
    line.dataset.at = at;
    line.id = `${this.host.id}-${at}`;
    line.style.top = `${at * this.height}px`;
    for (const column of this.columns) {
      const text = column.text(row);
      const cell = make("span", `${column.kind ?? ""} ${column.look?.(row) ?? ""}`, text);
      cell.setAttribute("role", "gridcell");
      if (text.length > 24) cell.title = text;
      line.append(cell);
    }
    return line;
  }

  draw() {
    if (this.whole) return;
    const from = Math.max(0, Math.floor(this.body.scrollTop / this.height) - SPARE);
    const to = Math.min(this.rows.length,
      Math.ceil((this.body.scrollTop + (this.body.clientHeight || 400)) / this.height) + SPARE);
    const lines = [];
    for (let at = from; at < to; at += 1) lines.push(this.line(this.rows[at], at));
    if (!this.rows.length) lines.push(make("p", "none", "Nothing fits the filter."));
    this.space.replaceChildren(...lines);
    if (this.at >= from && this.at < to) {
      this.body.setAttribute("aria-activedescendant", `${this.host.id}-${this.at}`);
    } else this.body.removeAttribute("aria-activedescendant");
  }

  /** Moves to a row and brings it into view. */
  go(at, { tell = true } = {}) {
    if (!this.rows.length) return;
    this.at = clamp(at, 0, this.rows.length - 1);
    const top = this.at * this.height, room = this.body.clientHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + this.height > this.body.scrollTop + room) this.body.scrollTop = top + this.height - room;
    this.draw();
    if (tell) this.moved(this.rows[this.at]);
  }

  /** Brings a row into the middle. */
  centre(at) {
    this.body.scrollTop = at * this.height - this.body.clientHeight / 2;
    this.go(at, { tell: false });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.height) - 1);
    const to = {
      ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page,
      Home: 0, End: this.rows.length - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.go(to);
    } else if (event.key === "Enter" && this.at >= 0) {
      event.preventDefault();
      this.open(this.rows[this.at]);
    }
  }

  /** Puts so many rows into the page as paper is to show, or goes back. */
  print(on) {
    this.whole = false;
    if (on) {
      const lines = this.rows.slice(0, PRINT_MOST).map((row, at) => this.line(row, at));
      const rest = this.rows.length - lines.length;
      if (rest > 0) lines.push(make("p", "none", `And ${count(rest, "more row")}.`));
      this.space.replaceChildren(...lines);
      this.whole = true;
    } else this.draw();
  }
}

/** A field that narrows a list down to the rows with all of its words. */
function filterBy(field, status, list, textOf, word, also = () => true) {
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = list.all.filter((row) => {
      if (!also(row)) return false;
      const text = words.length ? textOf(row).toLowerCase() : "";
      return words.every((one) => text.includes(one));
    });
    list.show(rows);
    status.textContent = rows.length === list.all.length ? count(rows.length, word)
      : `${rows.length.toLocaleString("en")} of ${count(list.all.length, word)}`;
  };
  field.addEventListener("input", apply);
  apply();
  return apply;
}
