// The kill map: the undisturbed run above, every point below it.

const SERVICE_HEIGHT = 22, RUN_HEIGHT = 14, POINT_HEIGHT = 26;

function badColour(rank, palette) {
  const names = ["bad", "bad-2", "bad-3", "bad-4", "bad-5"];
  return palette[names[Math.max(0, rank) % names.length]];
}

/** One mark: height and shape say the outcome as much as the colour does. */
function paintMark(ctx, palette, outcome, rank, x, y, width, height) {
  const left = x - width / 2;
  if (outcome === VALID) {
    ctx.fillStyle = palette.ok;
    ctx.fillRect(left, y + height * 0.62, width, height * 0.38);
  } else if (outcome === INVALID) {
    ctx.fillStyle = badColour(rank, palette);
    const parts = Math.max(0, rank) % 5 + 1; // a further kind has one more cut
    const part = (height - (parts - 1) * 3) / parts;
    for (let at = 0; at < parts; at += 1) ctx.fillRect(left, y + at * (part + 3), width, part);
  } else if (outcome === FLAKY) {
    ctx.fillStyle = palette.flaky;
    ctx.fillRect(left, y + height / 2, width, height / 2);
    ctx.fillRect(left, y, width, 2);
    ctx.fillRect(left, y, Math.min(1.5, width), height / 2);
  } else if (outcome === UNKNOWN) {
    ctx.fillStyle = palette["warn-fill"];
    for (let at = height * 0.3; at < height; at += 4) ctx.fillRect(left, y + at, width, 2);
  } else {
    ctx.fillStyle = palette.firm;
    ctx.fillRect(left, y + height - 3, width, 3);
  }
}

/** The events of a run: calls, crossings and steps as ticks, requests as bars, effects as blocks. */
function paintRun(ctx, strip, run, laneOf) {
  const palette = strip.colours;
  const from = firstWhere(run.length, (at) => run[at].index >= strip.view[0] - 2);
  const wide = Math.max(1.5, Math.min(10, strip.scale * 0.7));
  let last = -Infinity;
  const edges = new Map(), named = strip.scale > 7; // below, no name has room
  for (let at = from; at < run.length && run[at].index <= strip.view[1] + 1; at += 1) {
    const event = run[at], lane = strip.lanes[laneOf(event)];
    if (!lane) continue;
    const x = strip.px(event.index + 0.5), { y, height } = lane;
    if (event.what === "call") {
      if (x - last < 0.5) continue; // the one before covers it
      last = x;
      ctx.fillStyle = palette.call;
      ctx.fillRect(x - Math.min(wide, 3) / 2, y + 2, Math.min(wide, 3), height - 4);
    } else if (event.what === "request" || event.what === "reply") {
      ctx.fillStyle = palette.request;
      ctx.fillRect(x - strip.scale / 2, y + height * 0.3, Math.max(1, strip.scale), height * 0.4);
      if (event.marks & DEDUPED) {
        ctx.fillStyle = palette.warn;
        ctx.fillRect(x - wide / 2, y + height * 0.3, wide, height * 0.4);
      }
    } else if (event.what === "effect") {
      ctx.fillStyle = event.marks & REPEATED ? palette.bad : palette.effect;
      ctx.fillRect(x - Math.max(2, wide) / 2, y, Math.max(2, wide), height);
    } else if (event.what === "step" || event.what === "crossing") {
      ctx.fillStyle = event.marks & REDONE ? palette.warn : palette[event.what === "step" ? "step" : "code"];
      ctx.fillRect(x - Math.max(2, Math.min(wide, 5)) / 2, y + 1, Math.max(2, Math.min(wide, 5)), height - 2);
    } else if (event.what !== "fault") {
      ctx.fillStyle = palette.quiet;
      ctx.fillRect(x - 1, y + 2, 2, height - 4);
    }
    if (named) {
      if (!edges.has(lane)) edges.set(lane, []);
      edges.get(lane).push(event);
    }
  }
  ctx.globalAlpha = 1;
  if (named) labelRun(ctx, strip, edges);
}

/** Names beside marks, where there is room up to the next mark of the lane. */
function labelRun(ctx, strip, edges) {
  ctx.font = `11px ${strip.colours.sans}`;
  for (const [lane, run] of edges) {
    run.forEach((event, at) => {
      if (event.what === "reply" || event.what === "start") return;
      const x = strip.px(event.index + 0.5) + (event.what === "request" ? Math.max(7, strip.scale / 2 + 4) : 8);
      const next = run[at + 1];
      const room = (next ? strip.px(next.index + 0.5) : strip.width) - x - 8;
      if (room < 26) return;
      ctx.fillStyle = event.marks & REPEATED ? strip.colours.bad : strip.colours.quiet;
      ctx.fillText(shortened(ctx, event.title, room), x, lane.y + lane.height / 2);
    });
  }
}

function runLanes(names) {
  const known = ["task", "steps", "code", "files"];
  const order = [...known.filter((name) => names.includes(name)),
    ...names.filter((name) => !known.includes(name))];
  return order.map((name) => ({
    name, height: known.includes(name) ? RUN_HEIGHT : SERVICE_HEIGHT,
  }));
}

function laneFinder(lanes) {
  const numbers = new Map(lanes.map((lane, at) => [lane.name, at]));
  return (event) => numbers.get(event.lane);
}

class KillMap {
  constructor(host, data, marks, trials, open) {
    const run = events(data.map.run, data.strings);
    const above = runLanes(data.map.run.lanes);
    const lanes = [...above, ...data.map.lanes.map((name, at) => (
      { name, height: POINT_HEIGHT, gap: at ? 0 : 14 }))];
    const laneOf = laneFinder(above);
    const stops = marks.map((mark) => ({
      ...mark, lane: mark.lane + above.length, bad: mark.outcome >= FLAKY,
    }));
    this.spans = data.map.spans;
    if (lanes.length === above.length) lanes.push({ name: "", height: 1, gap: 14 }); // nothing to kill at
    this.strip = new Strip(host, {
      label: `Kill map: ${count(stops.length, "point")}. Arrow keys move, n goes to the next failure, Enter opens the trial.`,
      lanes, stops, length: data.map.length, open,
      describe: (stop) => this.describe(stop, trials),
      paint: (ctx, strip) => {
        this.paintSpans(ctx, strip);
        if (!stops.length) return paintRun(ctx, strip, run, laneOf);
        ctx.fillStyle = strip.colours.line;
        ctx.fillRect(0, strip.lanes[above.length].y - 11, strip.width, 1);
        paintRun(ctx, strip, run, laneOf);
        this.paintPoints(ctx, strip);
      },
    });
  }

  paintSpans(ctx, strip) {
    ctx.fillStyle = strip.colours["bad-soft"];
    for (const [from, to] of this.spans) {
      const left = strip.px(from / 10) - 2, right = strip.px(to / 10) + 2;
      if (right > 0 && left < strip.width) ctx.fillRect(left, 0, right - left, strip.height);
    }
  }

  paintPoints(ctx, strip) {
    const width = clamp(strip.scale * 0.3, strip.scale < 1.5 ? 1 : 2, 10);
    const from = firstWhere(strip.stops.length, (at) => strip.stops[at].x >= strip.view[0] - 1);
    const shown = [];
    for (let at = from; at < strip.stops.length && strip.stops[at].x <= strip.view[1] + 1; at += 1) {
      shown.push(strip.stops[at]);
    }
    for (const outcome of [NOT_TRIED, VALID, UNKNOWN, FLAKY, INVALID]) { // the worst one on top
      const last = new Map();
      for (const stop of shown) {
        const x = strip.px(stop.x), key = stop.lane * 100 + stop.rank;
        if (stop.outcome !== outcome || x - (last.get(key) ?? -Infinity) < 0.5) continue; // covered
        last.set(key, x);
        const lane = strip.lanes[stop.lane];
        paintMark(ctx, strip.colours, outcome, stop.rank, x, lane.y, width, lane.height);
      }
    }
  }

  describe(stop, trials) {
    const first = trials[stop.trials[0]];
    const kind = first?.kind ? `: ${first.kind}` : "";
    const more = stop.trials.length > 1 ? `, the worst of ${stop.trials.length} trials` : "";
    return [stop.name, `${OUTCOMES[stop.outcome]}${kind}${more}`, stop.between, stop.code];
  }
}

/** The marks with their meaning and how many there are; only what is there. */
function fillLegend(list, marks, kinds) {
  const found = new Map();
  for (const mark of marks) {
    const key = `${mark.outcome}|${mark.outcome === INVALID ? mark.rank : -1}`;
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  const keys = [...found.keys()].sort().reverse();
  const draw = () => {
    list.replaceChildren(...keys.map((key) => {
      const [outcome, rank] = key.split("|").map(Number);
      const item = make("li"), swatch = make("canvas");
      swatch.width = 28;
      swatch.height = 36;
      swatch.setAttribute("aria-hidden", "true");
      const ctx = swatch.getContext("2d");
      ctx.scale(2, 2);
      paintMark(ctx, colours(), outcome, rank, 7, 1, 7, 16);
      const name = outcome === INVALID && rank >= 0 ? `INVALID: ${kinds[rank]}` : OUTCOMES[outcome];
      item.append(swatch, make("span", "", name), make("span", "quiet", found.get(key).toLocaleString("en")));
      return item;
    }));
  };
  draw();
  return draw;
}
