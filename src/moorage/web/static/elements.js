// Elements from text. Whatever a cluster says is text and nothing else.

export const find = (id) => document.getElementById(id);

export function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function button(text, act, attributes = {}) {
  const made = element("button", { text, type: "button", ...attributes });
  made.addEventListener("click", act);
  return made;
}

export const link = (text, follow) => button(text, follow, { class: "link" });

// A bar from 0 to 1. What it says is beside it as text, so readers of the page need not hear it.
export function bar(share, colour) {
  const fill = element("i"), made = element("span", { class: "bar", "aria-hidden": "true" }, fill);
  setBar(made, share, colour);
  return made;
}

export function setBar(made, share, colour) {
  const fill = made.firstChild;
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  made.classList.toggle("over", share > 1);
  if (colour) fill.style.background = colour;
}

// A name that is broken after its slashes and dots first, where it has to be, and at hyphens only where a part is too
// long. Screen readers read it as one.
export const breakable = (name) => {
  const parts = name.split(/(?<=[/.])/).map((part) => element("span", { class: "part", text: part }));
  return parts.length > 1 ? [element("span", { role: "img", "aria-label": name }, ...parts)] : parts;
};

// A part that is folded until it is wanted. It is the same one when only the numbers in its title change.
export const folded = (title, ...children) =>
  element("details", { class: "folded", "data-key": title.replaceAll(/\d/g, "") }, element("summary", { text: title }), ...children);

// Seconds that are left, and go down.
export const countdown = (seconds) => tick(element("span", { "data-until": performance.now() + 1000 * seconds }));

export function tick(made) {
  say(made, `${Math.max(0, (made.dataset.until - performance.now()) / 1000).toFixed(0)} s`);
  return made;
}

const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// An amount in native units as people write it: cpu in cores, memory in binary units.
export function amount(resource, value) {
  if (resource === "cpu") return number(value / 1000, 3);
  if (!/memory|storage|hugepages/.test(resource)) return number(value);
  const power = value > 0 ? Math.min(UNITS.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${number(value / 1024 ** power, 1)}${UNITS[power]}`;
}

export const number = (value, digits = 0) => value.toLocaleString("en", { maximumFractionDigits: digits });

export const percent = (share) => `${number(100 * share, share > 0 && share < 0.1 ? 1 : 0)}%`;

export const count = (amount, what) => `${number(amount)} ${what}${amount === 1 ? "" : "s"}`;

export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");

export const requests = (asked) =>
  Object.entries(asked).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");

// The rest of a scheduler's message is about preemption; the panel has all of it.
export const firstSentence = (message) => message.split(". ")[0].replace(/\.$/, "");

// Puts a text where it is not already: what does not change is not laid out again.
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}
