// The table of trials and the table of duplicate effects.

function trialsTable(trials, open) {
  const list = new List(byId("trials-table"), {
    label: "Trials", rows: trials, height: 34, least: 640, open,
    columns: [
      { name: "#", width: "3.5em", kind: "n", text: (t) => String(t.index + 1), by: (t) => t.index },
      { name: "Outcome", width: "6em", text: (t) => OUTCOMES[t.outcome], by: (t) => -t.outcome, look: (t) => OUTCOME_CLASS[t.outcome] },
      { name: "What was done to the task", width: "minmax(0, 3fr)", kind: "code", text: (t) => t.schedule },
      { name: "Finding", width: "minmax(0, 1.3fr)", text: (t) => t.repeated.startsWith("FLAKY") ? `${t.kind} ${t.repeated}` : t.kind },
      { name: "How", width: "minmax(0, 1fr)", text: (t) => t.wave ? WAYS[t.way] : "undisturbed" },
    ],
  });
  const wanted = new Set();
  const apply = filterBy(byId("trials-filter"), byId("trials-count"), list,
    (t) => `${t.schedule} ${OUTCOMES[t.outcome]} ${t.kind} ${t.repeated}`, "trial",
    (t) => !wanted.size || wanted.has(t.outcome));
  const there = [INVALID, FLAKY, UNKNOWN, VALID, NOT_TRIED].filter((o) => trials.some((t) => t.outcome === o));
  for (const outcome of there.length > 1 ? there : []) {
    const chip = make("button", "plain", OUTCOMES[outcome] === "not tried" ? "missed" : OUTCOMES[outcome]);
    chip.type = "button";
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      if (!wanted.delete(outcome)) wanted.add(outcome);
      chip.setAttribute("aria-pressed", String(wanted.has(outcome)));
      apply();
    });
    byId("outcome-chips").append(chip);
  }
  return { list, apply };
}

const CSV_COLUMNS = ["operation", "who", "what", "identity", "amount", "expected", "seen", "attempts",
  "keys", "allowed by the contract", "trials", "worst trial"];

/** A cell of RFC 4180; what a spreadsheet would take for a formula begins with an apostrophe. */
function csvCell(value) {
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function duplicatesCsv(rows, trials) {
  const lines = rows.map((d) => [d.operation, d.who, d.what, d.identity, d.amount, d.expected, d.seen,
    d.attempts, d.keys, d.allowed ? "yes" : "no", d.number, trials[d.trials[0]].schedule]);
  return [CSV_COLUMNS, ...lines].map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");
}

function duplicatesTable(duplicates, trials, open) {
  if (!duplicates.length) return null;
  const people = duplicates.some((d) => d.who);
  const columns = [
    { name: "What", width: "minmax(0, 1.7fr)", text: (d) => d.what },
    { name: "Which", width: "minmax(0, 2fr)", text: (d) => d.which },
    { name: "Amount", width: "6.5em", kind: "n", text: (d) => d.amount },
    { name: "Expected", width: "5.2em", kind: "n", text: (d) => String(d.expected), by: (d) => d.expected },
    { name: "Seen", width: "4em", kind: "n", text: (d) => String(d.seen), by: (d) => d.seen, look: (d) => d.allowed ? "" : "o-invalid" },
    { name: "Attempts", width: "5.4em", text: (d) => d.attempts },
    { name: "Keys", width: "minmax(0, 1fr)", text: (d) => d.keys },
    { name: "Trials", width: "4em", kind: "n", text: (d) => d.number.toLocaleString("en"), by: (d) => d.number },
  ];
  if (people) columns.unshift({ name: "Who", width: "minmax(0, 2fr)", text: (d) => d.who });
  const list = new List(byId("duplicates-table"), {
    label: "Duplicate effects", rows: duplicates, height: 34, least: people ? 980 : 860, columns,
    open: (row) => open(row.trials[0]),
  });
  filterBy(byId("duplicates-filter"), byId("duplicates-count"), list,
    (d) => `${d.operation} ${d.who} ${d.what} ${d.identity} ${d.amount} ${d.keys}${d.allowed ? " allowed" : ""}`,
    "effect");
  byId("duplicates-csv").addEventListener("click", () => {
    const blob = new Blob(["\ufeff", duplicatesCsv(list.rows, trials)], { type: "text/csv;charset=utf-8" });
    const link = make("a");
    link.href = URL.createObjectURL(blob);
    link.download = "duplicate-effects.csv";
    link.click();
    URL.revokeObjectURL(link.href);
    say(`${count(list.rows.length, "row")} downloaded`);
  });
  return list;
}
