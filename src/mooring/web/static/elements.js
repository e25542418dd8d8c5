// Elements from text. Whatever a cluster says is text and nothing else.

export const find = (id) => document.getElementById(id);

export function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function link(text, follow) {
  const made = element("button", { text, type: "button", class: "link" });
  made.addEventListener("click", follow);
  return made;
}

const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

// An amount in native units as people write it: cpu in cores, memory in binary units.
export function amount(resource, value) {
  if (resource === "cpu") return `${value / 1000}`;
  if (!/memory|storage|hugepages/.test(resource)) return value.toLocaleString("en");
  const power = value > 0 ? Math.min(UNITS.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${Number((value / 1024 ** power).toFixed(1))}${UNITS[power]}`;
}
