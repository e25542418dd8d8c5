// Showing something again after it has changed, without a flicker: what is the same is left alone, so
// that whatever is unfolded, pressed, selected or has the focus stays so.

// What only the reader changes.
const KEPT = new Set(["open", "aria-pressed", "tabindex"]);

// Makes a place show these parts.
export function renew(place, parts) {
  const before = [...place.childNodes];
  let at = 0;
  for (const made of parts) {
    const found = before.findIndex((each, which) => which >= at && isSame(each, made));
    if (found < 0) {
      place.insertBefore(made, before[at] ?? null);
      continue;
    }
    for (const gone of before.slice(at, found)) gone.remove();
    update(before[found], made);
    at = found + 1;
  }
  for (const gone of before.slice(at)) gone.remove();
}

function isSame(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && key(one) === key(other);
}

// Buttons do what they say, so one that says something else is another one.
function key(made) {
  if (made.nodeType !== Node.ELEMENT_NODE) return "";
  if (made.dataset.key) return made.dataset.key;
  return made.nodeName === "BUTTON" ? made.textContent : made.classList[0] ?? "";
}

function update(old, made) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  // Styles are set one by one: the policy of the page forbids them as attributes.
  if (old.style.cssText !== made.style.cssText) old.style.cssText = made.style.cssText;
  for (const { name, value } of made.attributes) {
    if (name !== "style" && !KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "style" && !KEPT.has(name) && !made.hasAttribute(name)) old.removeAttribute(name);
  }
  // The names of nodes that stand out while it is pointed at.
  if (made.nodes) old.nodes = made.nodes;
  renew(old, [...made.childNodes]);
}
