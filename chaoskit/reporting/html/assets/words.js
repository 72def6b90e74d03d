// The words and numbers that the page shares with the modules that made its data.

const OUTCOMES = ["not tried", "VALID", "UNKNOWN", "FLAKY", "INVALID"]; // outcomes.py
const NOT_TRIED = 0, VALID = 1, UNKNOWN = 2, FLAKY = 3, INVALID = 4;
const OUTCOME_CLASS = ["o-none", "o-valid", "o-unknown", "o-flaky", "o-invalid"];

const WHATS = ["start", "end", "call", "request", "effect", "reply", "crossing", "step", "fault",
  "says", "note", "outputs", "cut", "records"]; // tape.py: WHATS
const REPEATED = 1, REDONE = 2, WITNESS = 4, DEDUPED = 8; // tape.py

const WAYS = ["real kill", "from a copy", "from a copy, resume shared"]; // trial_rows.py: Row.way

function byId(id) {
  return document.getElementById(id);
}

/** A new element with text; text is only ever set as text. */
function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function say(text) {
  byId("spoken").textContent = text;
}

function count(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}

/** The first index at which `above(index)` holds, of `length` that go from false to true. */
function firstWhere(length, above) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (above(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea");
    area.value = text;
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = done ? "Copied" : "Select and copy";
  say(done ? "Copied" : "It could not be copied: select it and copy");
  button.addEventListener("blur", () => { button.textContent = "Copy"; }, { once: true });
}

/** A command in a box with its button, as the macro of the same name in parts.html.j2. */
function copyable(text, label) {
  const box = make("span", "copyable");
  const code = make("code", "", text);
  code.tabIndex = 0;
  const button = make("button", "plain copy", "Copy");
  button.type = "button";
  button.setAttribute("aria-label", label);
  box.append(code, button);
  return box;
}
