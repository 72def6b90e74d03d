// Words, numbers and elements that every part of the page uses.

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

function button(className, text, onClick) {
  const made = make("button", className, text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

/** Sets a text only where it differs, so that nothing is told twice and no selection is lost. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Fills a select with [value, text], keeping what was chosen if it is still there. */
function setOptions(select, options) {
  const key = JSON.stringify(options);
  if (select.dataset.options === key) return;
  const before = select.value;
  select.dataset.options = key;
  select.replaceChildren(...options.map(([value, text]) => {
    const made = make("option", "", text);
    made.value = value;
    return made;
  }));
  if (options.some(([value]) => value === before)) select.value = before;
}

function say(text) {
  byId("spoken").textContent = text;
}

function number(value) {
  return value.toLocaleString("en");
}

function count(value, word) {
  return `${number(value)} ${word}${value === 1 ? "" : "s"}`;
}

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

function timeOf(seconds) {
  return CLOCK.format(new Date(seconds * 1000));
}

/** A length of time in its two largest units: "1 d 1 h". */
function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const parts = [];
  let left = Math.round(seconds);
  for (const [name, size] of units) {
    const here = Math.floor(left / size);
    left -= here * size;
    if (here) parts.push(`${number(here)} ${name}`);
  }
  return parts.slice(0, 2).join(" ") || "0 s";
}

function pause(ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
