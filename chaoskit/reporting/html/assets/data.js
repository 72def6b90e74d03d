// Unpacks what the page holds: deflated JSON in base64, the index at once, a block when it is asked for.

async function unpack(id) {
  const packed = Uint8Array.from(atob(JSON.parse(byId(id).textContent)), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

/** Rows of a tape (tape.py) as events, in order, with their time in ms since the first one. */
function events(tape, strings) {
  let at = 0, began = null;
  return tape.rows.map(([what, attempt = 0, later = 0, lane = 0, title = 0, detail = 0, marks = 0,
    first = 0], index) => {
    at += later;
    began ??= at;
    return {
      index, attempt, marks, first, what: WHATS[what], ms: (at - began) / 100,
      lane: tape.lanes[lane], title: strings[title], detail: strings[detail],
    };
  });
}

/** A row of the index (trial_rows.py: Row) as an object. */
function trialOf([schedule, wave, outcome, kind, way, end, repeated, block, within], index, kinds) {
  return {
    index, schedule, wave, outcome, way, end, repeated, block, within,
    kind: kind < 0 ? "" : kinds[kind],
    rank: kind,
  };
}

/** A mark of the map (kill_map.py: Mark) as an object; places are tenths of a unit. */
function markOf([lane, x, outcome, kind, name, between, code, trials], strings) {
  return {
    lane, x: x / 10, outcome, rank: kind, name: strings[name], between: strings[between],
    code: strings[code], trials,
  };
}

class Blocks {
  constructor() {
    this.kept = new Map();
  }

  /** The details of a trial (trial_rows.py: Details) with the texts of its block. */
  async of(trial) {
    if (trial.block < 0) return null;
    let block = this.kept.get(trial.block);
    if (block === undefined) {
      block = await unpack(`block-${trial.block}`);
      this.kept.set(trial.block, block);
      if (this.kept.size > 8) this.kept.delete(this.kept.keys().next().value);
    }
    const details = block.trials[trial.within];
    return { ...details, events: events(details.tape, block.strings) };
  }
}
