// A long list: only the lines in view are in the page, and only they are asked for.

const SPARE = 10, ASK_MOST = 200, LINE_PX = 34, LINES_MOST = 500000;

class List {
  /** host: the element to fill. chosen(row): a line was moved to. enter(): go to what it shows. */
  constructor(host, { chosen, enter }) {
    Object.assign(this, { host, chosen, enter, last: Promise.resolve() });
    this.grid = make("div", "grid");
    this.grid.setAttribute("role", "grid");
    this.head = make("div", "head");
    this.head.setAttribute("role", "row");
    this.body = make("div", "body");
    this.body.id = "lines";
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "rowgroup");
    this.space = make("div", "space");
    this.space.setAttribute("role", "presentation");
    this.body.append(this.space);
    this.grid.append(this.head, this.body);
    host.replaceChildren(this.grid);
    this.body.addEventListener("scroll", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.space.addEventListener("click", (event) => {
      const line = event.target.closest(".line");
      if (line) this.go(Number(line.dataset.at));
    });
    new ResizeObserver(() => this.draw()).observe(this.body);
    this.use({ label: "", columns: [], least: 0, none: "", ask: null });
  }

  /**
   * Shows other books. label: their name. columns: {name, width, text(row), look?}. least: width
   * below which it scrolls. none: what an empty one says. ask(start, limit): a window, the oldest
   * first. newest: whether the newest is on top.
   */
  use(books) {
    Object.assign(this, { newest: true }, books);
    this.total = 0;
    this.rows = new Map();
    this.at = -1;
    this.fresh = true;
    this.grid.setAttribute("aria-label", this.label);
    this.body.setAttribute("aria-label", `${this.label}: arrow keys move, Enter shows`);
    this.columnsAre(this.columns, this.least);
    this.body.scrollTop = 0;
    this.draw();
  }

  columnsAre(columns, least) {
    this.columns = columns;
    this.grid.style.setProperty("--columns", columns.map((one) => one.width).join(" "));
    this.grid.style.setProperty("--least", `${least}px`);
    this.head.replaceChildren(...columns.map((column) => {
      const cell = make("div", column.kind?.startsWith("n") ? "n" : "", column.name);
      cell.setAttribute("role", "columnheader");
      return cell;
    }));
  }

  /** The position of the row that is the `index`-th, the oldest being 0; and the other way round. */
  turned(index) {
    return this.newest ? this.total - 1 - index : index;
  }

  inView() {
    const from = Math.floor(this.body.scrollTop / LINE_PX) - SPARE;
    const to = Math.ceil((this.body.scrollTop + (this.body.clientHeight || 400)) / LINE_PX) + SPARE;
    return [clamp(from, 0, this.total), clamp(to, 0, Math.min(this.total, LINES_MOST))];
  }

  /** Asks for what is in view, all of it anew or only what is missing; one after the other. */
  load(anew) {
    const done = this.last.then(() => this.fetch(anew));
    this.last = done.catch(() => {});
    return done;
  }

  async fetch(anew) {
    if (!this.ask) return;
    const [from, to] = this.inView();
    const ends = to > from ? [this.turned(from), this.turned(to - 1)].sort((a, b) => a - b) : [0, 0];
    let start = ends[0], limit = Math.min(ASK_MOST, ends[1] - ends[0] + 1);
    if (anew && this.newest && this.body.scrollTop < LINE_PX) {
      // At the top there may be more by now than were known of: those are to be seen.
      const told = await this.window(0, 0);
      if (!told) return;
      const room = Math.ceil((this.body.clientHeight || 400) / LINE_PX) + SPARE;
      start = Math.max(0, told.total - room);
      limit = clamp(room, 1, ASK_MOST);
    } else if (!this.total) {
      limit = ASK_MOST;
    }
    const told = await this.window(start, limit);
    if (!told) return;
    if (anew) this.rows.clear();
    told.rows.forEach((row, n) => this.rows.set(told.start + n, row));
    this.grow(told.total);
    this.draw();
  }

  async window(start, limit) {
    const ask = this.ask;
    const told = await ask(start, limit);
    return ask === this.ask ? told : null; // other books may have been opened meanwhile
  }

  grow(total) {
    const more = total - this.total;
    const top = this.body.scrollTop;
    this.total = total;
    this.grid.setAttribute("aria-rowcount", total + 1);
    this.space.style.height = `${Math.max(2, Math.min(total, LINES_MOST)) * LINE_PX}px`;
    if (this.newest && more > 0 && !this.fresh) {
      if (this.at >= 0) this.at += more;
      if (top >= LINE_PX) this.body.scrollTop = top + more * LINE_PX; // what is read stays in place
    }
    if (more < 0) this.at = -1;
    this.fresh = false;
  }

  /** A line for a row, in an element of a line that is there, so that a click on it is not lost. */
  line(row, at, old) {
    const line = old ?? make("div");
    line.className = `line ${row?.same_as ? "same" : ""} ${at === this.at ? "at" : ""}`;
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", at + 2);
    line.setAttribute("aria-selected", String(at === this.at));
    line.dataset.at = at;
    line.id = `line-${at}`;
    line.style.top = `${at * LINE_PX}px`;
    this.columns.forEach((column, n) => {
      const text = row ? column.text(row) : "";
      const cell = line.children[n] ?? line.appendChild(make("span"));
      cell.className = `${column.kind ?? ""} ${row && column.look ? column.look(row) : ""}`;
      cell.setAttribute("role", "gridcell");
      cell.title = text.length > 20 ? text : "";
      setText(cell, text);
    });
    return line;
  }

  draw() {
    const [from, to] = this.inView();
    const fits = (one) => one?.matches(".line") && one.children.length === this.columns.length;
    const old = [...this.space.children].filter(fits);
    let missing = false;
    const lines = [];
    for (let at = from; at < to; at += 1) {
      const row = this.rows.get(this.turned(at));
      missing ||= !row;
      lines.push(this.line(row, at, old[at - from]));
    }
    if (!this.total) lines.push(make("p", "none", this.none));
    const kept = new Set(lines);
    for (const one of [...this.space.children]) if (!kept.has(one)) one.remove();
    this.space.append(...lines.slice(this.space.children.length));
    if (this.at >= from && this.at < to) this.body.setAttribute("aria-activedescendant", `line-${this.at}`);
    else this.body.removeAttribute("aria-activedescendant");
    if (missing && !this.loading) {
      this.loading = true;
      this.load(false).catch(() => {}).finally(() => { this.loading = false; });
    }
  }

  /** Moves to a line, brings it into view and shows what it is. */
  async go(at) {
    if (!this.total) return;
    this.at = clamp(at, 0, Math.min(this.total, LINES_MOST) - 1);
    const top = this.at * LINE_PX, room = this.body.clientHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + LINE_PX > this.body.scrollTop + room) this.body.scrollTop = top + LINE_PX - room;
    this.draw();
    if (!this.rows.get(this.turned(this.at))) await this.load(false);
    const row = this.rows.get(this.turned(this.at));
    if (row) this.chosen(row);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / LINE_PX) - 1);
    const to = {
      ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page,
      Home: 0, End: this.total - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.go(to);
    } else if (event.key === "Enter" && this.at >= 0) {
      event.preventDefault();
      this.enter();
    }
  }
}
