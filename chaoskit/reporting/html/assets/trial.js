// One trial: what was found, its timeline, its events, and how to see it again.

const NEAR = 60;

class TrialView {
  constructor(trials, blocks, again) {
    Object.assign(this, { trials, blocks, again, dialog: byId("trial"), strip: null, events: [] });
    byId("trial-close").addEventListener("click", () => this.dialog.close());
    byId("trial-next").addEventListener("click", () => this.show(this.at + 1));
    byId("trial-back").addEventListener("click", () => this.show(this.at - 1));
    byId("trial-error").addEventListener("click", () => this.toError());
    byId("line-in").addEventListener("click", () => this.strip?.zoom(0.5));
    byId("line-out").addEventListener("click", () => this.strip?.zoom(2));
    byId("line-fit").addEventListener("click", () => this.strip?.whole());
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "e" && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        this.toError();
      }
    });
    this.dialog.addEventListener("close", () => {
      hideTip();
      document.body.append(byId("tip"), byId("spoken"));
      history.replaceState(null, "", location.pathname + location.search);
      this.before?.focus({ preventScroll: true });
    });
  }

  async show(number) {
    const trial = this.trials[number];
    if (!trial) return;
    this.at = number;
    const details = await this.blocks.of(trial);
    if (this.at !== number) return; // another one was asked for meanwhile
    byId("trial-number").textContent = `Trial ${number + 1} of ${this.trials.length.toLocaleString("en")} · ${trial.wave ? WAYS[trial.way] : "undisturbed"} · the task's end: ${trial.end}`;
    byId("trial-title").textContent = trial.schedule;
    byId("trial-back").disabled = number === 0;
    byId("trial-next").disabled = number === this.trials.length - 1;
    this.showFindings(trial, details);
    if (!this.dialog.open) {
      this.before = document.activeElement;
      this.dialog.showModal();
      this.dialog.append(byId("spoken"));
      byId("trial-title").focus();
    }
    this.dialog.scrollTop = 0;
    this.showEvents(trial, details);
    history.replaceState(null, "", `#trial-${number + 1}`);
  }

  showFindings(trial, details) {
    const said = byId("trial-said");
    const parts = (details?.findings ?? []).map((one) => {
      const part = make("div", "one");
      const head = make("div");
      head.append(make("span", "kind o-invalid", one.kind), ` ${one.operation}`);
      part.append(head, make("div", "", `Expected ${one.expected}; seen ${one.seen}, because ${one.because}.`));
      for (const line of [one.between, one.code, ...one.consequences]) if (line) part.append(make("div", "quiet", line));
      return part;
    });
    for (const line of details?.unknowns ?? []) parts.push(make("div", "one doubt", `Unknown: ${line}`));
    if (trial.repeated) parts.push(make("div", "one doubt", `Repeated: ${trial.repeated}`));
    if (!parts.length) {
      const text = trial.outcome === NOT_TRIED ? "The moment came after the task's end: nothing was tried."
        : `${OUTCOMES[trial.outcome]}: nothing is wrong with this trial.`;
      parts.push(make("div", `one ${trial.outcome === VALID ? "fine" : "doubt"}`, text));
    }
    said.replaceChildren(...parts);
    const command = details?.findings.find((one) => one.replay)?.replay
      ?? (trial.schedule === "none" ? this.again : this.oneTrial(trial.schedule));
    byId("trial-replay").replaceChildren(copyable(command, "Copy the command that shows this trial again"));
  }

  /** The campaign's command for this one schedule. */
  oneTrial(schedule) {
    return this.again.replace("chaoskit run", `chaoskit run --at '${schedule.replaceAll("'", "'\\''")}'`);
  }

  showEvents(trial, details) {
    this.strip?.close();
    this.strip = null;
    this.events = details?.events ?? [];
    this.error = details?.tape.error ?? -1;
    if (this.error < 0) this.error = this.events.findIndex((event) => event.what === "fault");
    byId("trial-error").disabled = !(details?.tape.error >= 0);
    byId("event-detail").replaceChildren();
    if (!details) {
      byId("line-strip").replaceChildren(make("p", "none quiet", "The history of this trial is not in this page."));
      byId("events").replaceChildren();
      return;
    }
    this.list = new List(byId("events"), {
      label: "Events", rows: this.events, height: 28, headless: true,
      columns: [
        { name: "ms", width: "4.6em", kind: "n quiet", text: (e) => e.ms.toFixed(1) },
        { name: "Attempt", width: "1.4em", kind: "n quiet attempt", text: (e) => e.attempt ? String(e.attempt) : "" },
        { name: "What", width: "4.6em", kind: "quiet", text: (e) => e.what },
        { name: "Event", width: "minmax(0, 1fr)", text: (e) => e.title },
      ],
      look: (e) => `${e.marks & REPEATED ? "repeated" : ""} ${e.marks & REDONE ? "redone" : ""} ${e.what === "fault" ? "fault" : ""}`,
      moved: (event) => { this.strip.go(event.index, { aloud: false }); },
      open: () => {},
    });
    this.makeStrip(details);
  }

  makeStrip(details) {
    const lanes = runLanes(details.tape.lanes);
    const laneOf = laneFinder(lanes);
    lanes.forEach((lane, at) => { lane.gap = at ? 2 : 20; });
    this.strip = new Strip(byId("line-strip"), {
      label: `Timeline: ${count(this.events.length, "event")}. Arrow keys move, e goes to the first error.`,
      lanes, length: Math.max(1, this.events.length),
      stops: this.events.map((event) => ({
        event, x: event.index + 0.5, lane: laneOf(event), bad: event.marks & (REPEATED | REDONE),
      })),
      describe: ({ event }) => [event.title, `${event.what}, attempt ${event.attempt}, ${event.ms.toFixed(2)} ms`,
        ...this.remarks(event)],
      moved: ({ event }) => this.detail(event),
      open: ({ event }) => this.list.centre(event.index),
      paint: (ctx, strip) => this.paint(ctx, strip, laneOf),
    });
    const start = this.error < 0 ? 0 : this.error;
    if (this.events.length > NEAR * 2) {
      const first = this.events[start]?.first ?? start;
      const left = start - first < NEAR ? first : start;
      this.strip.show(left - 8, NEAR);
    }
    this.strip.go(start, { aloud: false });
    this.list.centre(start);
  }

  paint(ctx, strip, laneOf) {
    const palette = strip.colours;
    let began = 0;
    this.events.forEach((event, at) => {
      const last = at === this.events.length - 1;
      if (event.what === "start") began = at;
      if (event.what === "end" || last) this.paintAttempt(ctx, strip, event.attempt, began, at + 1);
    });
    paintRun(ctx, strip, this.events, laneOf);
    ctx.lineWidth = 2;
    for (const event of this.events) {
      if (event.what === "fault") this.paintFault(ctx, strip, event);
      if (event.marks & (REPEATED | REDONE)) {
        this.paintLink(ctx, strip, event, laneOf, event.marks & REPEATED ? palette.bad : palette.warn);
      }
    }
  }

  paintAttempt(ctx, strip, attempt, from, to) {
    const left = strip.px(from), right = strip.px(to);
    ctx.fillStyle = attempt % 2 ? "transparent" : strip.colours.raised;
    ctx.fillRect(left, 0, right - left, strip.height);
    ctx.fillStyle = strip.colours.quiet;
    ctx.font = `11px ${strip.colours.sans}`;
    const text = Math.max(left, strip.gutter) + 6;
    if (attempt && right - text > 96) ctx.fillText(attempt > 1 ? `attempt ${attempt}, resumes` : "attempt 1", text, 12);
  }

  paintFault(ctx, strip, event) {
    const x = strip.px(event.index + 0.5);
    ctx.strokeStyle = ctx.fillStyle = strip.colours.bad;
    ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.moveTo(x, 20);
    ctx.lineTo(x, strip.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.font = `600 11px ${strip.colours.sans}`;
    const word = event.title.split("@")[0], wide = ctx.measureText(word).width;
    ctx.clearRect(x - wide / 2 - 4, 3, wide + 8, 18);
    ctx.fillText(word, x - wide / 2, 12);
  }

  /** From something repeated back to the first one. */
  paintLink(ctx, strip, event, laneOf, colour) {
    const first = this.events[event.first];
    const [from, to] = [strip.px(first.index + 0.5), strip.px(event.index + 0.5)];
    if (to < 0 || from > strip.width) return;
    const one = strip.lanes[laneOf(first)], other = strip.lanes[laneOf(event)];
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(from, one.y);
    ctx.bezierCurveTo(from, one.y - 16, to, other.y - 16, to, other.y);
    ctx.stroke();
    ctx.strokeStyle = strip.colours.surface;
    ctx.strokeRect(from - 6, one.y - 1, 12, one.height + 2);
    ctx.strokeStyle = colour;
    ctx.strokeRect(from - 5, one.y - 1, 10, one.height + 2);
  }

  remarks(event) {
    const lines = [];
    if (event.marks & REPEATED) lines.push(`It happened before, as event ${event.first + 1}: this one is too many.`);
    if (event.marks & REDONE) lines.push(`It was complete at event ${event.first + 1}, and is begun again.`);
    if (event.marks & DEDUPED) lines.push("An earlier answer again, without a new effect.");
    return lines;
  }

  detail(event) {
    const box = byId("event-detail");
    const head = `Event ${event.index + 1} of ${this.events.length} · ${event.what} · attempt ${event.attempt} · ${event.ms.toFixed(2)} ms`;
    const parts = [make("div", "quiet", head), make("div", "title", event.title)];
    for (const line of this.remarks(event)) parts.push(make("div", event.marks & REPEATED ? "flag" : "quiet", line));
    if (event.detail) parts.push(make("div", "lines", event.detail));
    box.replaceChildren(...parts);
    if (this.list.at !== event.index) this.list.go(event.index, { tell: false });
  }

  toError() {
    if (!this.strip || this.error < 0) return;
    const event = this.events[this.error];
    const span = Math.min(this.strip.length, NEAR);
    if (this.strip.view[1] - this.strip.view[0] > span) {
      const from = event.index - event.first < span - 8 && event.marks & (REPEATED | REDONE) ? event.first : event.index - span / 2;
      this.strip.show(from - 4, span);
    }
    this.strip.go(this.error);
    this.list.centre(this.error);
    this.strip.host.focus({ preventScroll: true });
    say(`First error: ${event.title}. ${this.remarks(event).join(" ")}`);
  }
}
