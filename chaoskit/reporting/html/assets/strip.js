// A strip: lanes of marks along one line, on a canvas, with zoom, a cursor, tips and the keyboard.
// The kill map is one, and so is each timeline.

const LEAST_UNITS = 6;

class Strip {
  /**
   * host: the element to fill. label: its name. lanes: {name, height, gap?}. length: in units.
   * stops: what the cursor can be on, by x; each has x and lane. paint(ctx, strip): draws.
   * describe(stop): a title and lines. open(stop), moved(stop): what is done then.
   */
  constructor(host, given) {
    Object.assign(this, given);
    this.host = host;
    this.view = [0, this.length];
    this.cursor = -1;
    this.canvas = make("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    host.replaceChildren(this.canvas);
    host.tabIndex = 0;
    host.setAttribute("role", "application");
    host.setAttribute("aria-label", given.label);
    this.ctx = this.canvas.getContext("2d");
    let y = 8;
    for (const lane of this.lanes) {
      y += lane.gap ?? 0;
      lane.y = y;
      y += lane.height + 6;
    }
    this.height = y + 4;
    this.listen = new AbortController();
    this.follow();
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(host);
    this.fit();
  }

  /** Ends it, so that its host can hold another one. */
  close() {
    this.listen.abort();
    this.watch.disconnect();
  }

  /** Draws it as wide as its host is, or as wide as was asked for. */
  fit(asked) {
    const width = asked ?? this.host.clientWidth;
    if (!width) return;
    const sharp = Math.max(2, window.devicePixelRatio || 1);
    this.width = width;
    this.gutter = width < 560 ? 74 : 112;
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(this.height * sharp);
    this.canvas.style.height = `${this.height}px`;
    this.ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.draw();
  }

  get scale() {
    return (this.width - this.gutter - 14) / (this.view[1] - this.view[0]);
  }

  px(x) {
    return this.gutter + 4 + (x - this.view[0]) * this.scale;
  }

  unit(px) {
    return this.view[0] + (px - this.gutter - 4) / this.scale;
  }

  /** Asks for one drawing before the next frame, however often it is called. */
  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.width) return;
    this.colours = colours();
    const { ctx } = this;
    ctx.clearRect(0, 0, this.width, this.height);
    ctx.font = `12px ${this.colours.sans}`;
    ctx.textBaseline = "middle";
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, 0, this.width - this.gutter, this.height);
    ctx.clip();
    this.paint(ctx, this);
    this.drawCursor();
    ctx.restore();
    ctx.fillStyle = this.colours.quiet;
    for (const lane of this.lanes) {
      ctx.fillText(shortened(ctx, lane.name, this.gutter - 20), 12, lane.y + lane.height / 2);
    }
  }

  drawCursor() {
    const stop = this.stops[this.cursor];
    if (!stop) return;
    const lane = this.lanes[stop.lane], x = this.px(stop.x);
    this.ctx.strokeStyle = this.colours.focus;
    this.ctx.lineWidth = 2;
    const half = Math.max(4, Math.min(9, this.scale / 2 + 2));
    this.ctx.strokeRect(x - half, lane.y - 3, half * 2, lane.height + 6);
  }

  zoom(factor, about = this.cursor >= 0 ? this.stops[this.cursor].x : (this.view[0] + this.view[1]) / 2) {
    const span = clamp((this.view[1] - this.view[0]) * factor, Math.min(LEAST_UNITS, this.length),
      this.length);
    const part = (about - this.view[0]) / (this.view[1] - this.view[0]);
    this.show(about - clamp(part, 0, 1) * span, span);
  }

  show(from, span) {
    const start = clamp(from, 0, this.length - span);
    this.view = [start, start + Math.min(span, this.length)];
    this.draw();
  }

  whole() {
    this.show(0, this.length);
  }

  /** Puts the cursor on a stop and brings it into view. */
  go(index, { aloud = true } = {}) {
    if (!this.stops.length) return;
    this.cursor = clamp(index, 0, this.stops.length - 1);
    const { x } = this.stops[this.cursor];
    const span = this.view[1] - this.view[0];
    if (x < this.view[0] || x > this.view[1]) this.show(x - span / 2, span);
    this.draw();
    const [title, ...lines] = this.describe(this.stops[this.cursor]);
    if (aloud) say([title, ...lines].join(". "));
    this.moved?.(this.stops[this.cursor]);
    return this.stops[this.cursor];
  }

  /** The next stop in a direction for which `fits` holds, or the one that it is on. */
  seek(step, fits = () => true) {
    for (let at = this.cursor + step; at >= 0 && at < this.stops.length; at += step) {
      if (fits(this.stops[at])) return at;
    }
    return this.cursor;
  }

  /** The nearest stop on the next lane above or below that has one. */
  across(step) {
    const here = this.stops[this.cursor];
    if (!here) return 0;
    for (let lane = here.lane + step; lane >= 0 && lane < this.lanes.length; lane += step) {
      let best = -1;
      this.stops.forEach((stop, index) => {
        const nearer = best < 0 || Math.abs(stop.x - here.x) < Math.abs(this.stops[best].x - here.x);
        if (stop.lane === lane && nearer) best = index;
      });
      if (best >= 0) return best;
    }
    return this.cursor;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const bad = (stop) => stop.bad;
    const doings = {
      ArrowRight: () => this.go(this.seek(1)),
      ArrowLeft: () => this.go(this.seek(-1)),
      ArrowDown: () => this.go(this.across(1)),
      ArrowUp: () => this.go(this.across(-1)),
      Home: () => this.go(0),
      End: () => this.go(this.stops.length - 1),
      n: () => this.go(this.seek(1, bad)),
      p: () => this.go(this.seek(-1, bad)),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.whole(),
      Enter: () => this.stops[this.cursor] && this.open(this.stops[this.cursor]),
    };
    if (!doings[event.key]) return;
    event.preventDefault();
    doings[event.key]();
    if (this.stops[this.cursor] && event.key !== "Enter") this.tipAtCursor();
  }

  /** The stop under a place on the canvas, if one is near enough. */
  near(px, py) {
    const lane = this.lanes.findIndex((one) => py >= one.y - 4 && py <= one.y + one.height + 4);
    if (lane < 0 || px < this.gutter) return -1;
    const reach = Math.max(6, this.scale / 2);
    const from = firstWhere(this.stops.length, (at) => this.px(this.stops[at].x) >= px - reach);
    let best = -1;
    for (let at = from; at < this.stops.length; at += 1) {
      const away = this.px(this.stops[at].x) - px;
      if (away > reach) break;
      if (this.stops[at].lane !== lane) continue;
      if (best < 0 || Math.abs(away) < Math.abs(this.px(this.stops[best].x) - px)) best = at;
    }
    return best;
  }

  follow() {
    const { signal } = this.listen;
    let grabbed = null;
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.host.addEventListener("keydown", (event) => this.key(event), { signal });
    this.host.addEventListener("blur", hideTip, { signal });
    this.canvas.addEventListener("pointerdown", (event) => {
      grabbed = { x: event.clientX, view: this.view[0], moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    }, { signal });
    this.canvas.addEventListener("pointermove", (event) => {
      if (grabbed) {
        const by = event.clientX - grabbed.x;
        grabbed.moved ||= Math.abs(by) > 4;
        if (grabbed.moved) {
          this.host.classList.add("dragging");
          hideTip();
          this.show(grabbed.view - by / this.scale, this.view[1] - this.view[0]);
        }
        return;
      }
      const at = this.near(...place(event));
      if (at < 0) hideTip(); else showTip(this.describe(this.stops[at]), event.clientX, event.clientY);
    }, { signal });
    this.canvas.addEventListener("pointerup", (event) => {
      const still = grabbed && !grabbed.moved;
      grabbed = null;
      this.host.classList.remove("dragging");
      const at = still ? this.near(...place(event)) : -1;
      if (at >= 0) {
        this.go(at);
        hideTip();
        this.open(this.stops[at]);
      }
    }, { signal });
    this.canvas.addEventListener("pointercancel", () => { grabbed = null; }, { signal });
    this.canvas.addEventListener("pointerleave", hideTip, { signal });
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.unit(place(event)[0]));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.show(this.view[0] + event.deltaX / this.scale, this.view[1] - this.view[0]);
      }
    }, { signal, passive: false });
  }

  tipAtCursor() {
    const stop = this.stops[this.cursor], box = this.canvas.getBoundingClientRect();
    const lane = this.lanes[stop.lane];
    showTip(this.describe(stop), box.left + this.px(stop.x), box.top + lane.y + lane.height);
  }
}

function showTip([title, ...lines], x, y) {
  const tip = byId("tip");
  (document.querySelector("dialog[open]") ?? document.body).append(tip);
  tip.replaceChildren(make("b", "", title), ...lines.filter(Boolean).map((line) => make("div", "", line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${clamp(x + 12, 8, window.innerWidth - box.width - 8)}px`;
  const below = y + 16;
  tip.style.top = `${below + box.height > window.innerHeight - 8 ? Math.max(8, y - box.height - 12) : below}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

function shortened(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let kept = text;
  while (kept && ctx.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}

const COLOUR_NAMES = ["text", "quiet", "line", "firm", "surface", "raised", "bad", "bad-soft", "bad-2",
  "bad-3", "bad-4", "bad-5", "ok", "warn", "warn-fill", "flaky", "effect", "request", "call", "step",
  "code", "focus", "sans", "mono"];
let known = null;

function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  known = Object.fromEntries(COLOUR_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return known;
}

function forgetColours() {
  known = null;
}
