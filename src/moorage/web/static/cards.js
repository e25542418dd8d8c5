// A few nodes as cards, with their names and bars of what is used.

import { ABSENT, CORDONED } from "./state.js";
import { bar, breakable, count, element, number, say, setBar } from "./elements.js";
import { timed } from "./pace.js";

export class NodeCards {
  constructor(place, arrangement, { open, tell }) {
    Object.assign(this, { place, arrangement, open, tell });
    this.state = arrangement.state;
    this.overlay = null;
    this.cards = new Map();
    place.addEventListener("keydown", (event) => this.#key(event));
  }

  redraw() {
    timed("cards", () => this.#draw());
  }

  changed(rows) {
    if (rows === null) return this.redraw();
    for (const row of rows) if (this.cards.has(row)) this.#fill(row);
  }

  middle(row) {
    const box = this.cards.get(row)?.card.getBoundingClientRect();
    return box ? [box.left + box.width / 2, box.top + box.height / 2] : null;
  }

  #draw() {
    const { groups, isGrouped } = this.arrangement, focused = document.activeElement?.dataset?.row;
    const before = this.cards;
    this.cards = new Map();
    this.place.replaceChildren(...groups.flatMap((group) => {
      const cards = group.rows.map((row) => {
        const made = before.get(row) ?? this.#make(row);
        this.cards.set(row, made);
        return element("li", {}, made.card);
      });
      const list = element("ul", { class: "cards" }, ...cards);
      return isGrouped ? [this.#head(group), list] : [list];
    }));
    for (const row of this.cards.keys()) this.#fill(row);
    const first = this.cards.keys().next().value, current = this.cards.get(Number(focused));
    for (const [row, { card }] of this.cards) card.tabIndex = row === Number(focused ?? first) ? 0 : -1;
    if (current) current.card.focus();
    else if (first !== undefined) this.cards.get(first).card.tabIndex = 0;
  }

  #head(group) {
    const { rows } = group, mean = this.arrangement.mean(rows);
    const rest = `${count(rows.length, "node")}${mean === null ? "" : `, ${number(100 * mean)}% of ${this.arrangement.resource}`}`;
    return element("h3", { text: this.arrangement.title(group) }, element("span", { class: "hint", text: rest }));
  }

  #make(row) {
    const name = element("b", { class: "name" }), note = element("span", { class: "note" }), bars = element("span", { class: "bars" });
    const card = element("button", { type: "button", class: "card", "data-row": row }, name, note, bars);
    card.addEventListener("click", () => this.open(row));
    card.addEventListener("focus", () => this.tell(row));
    card.addEventListener("pointerenter", () => this.tell(row));
    return { card, name, note, bars, lines: new Map() };
  }

  #fill(row) {
    const { state, overlay } = this, { card, name, note, bars, lines } = this.cards.get(row), called = state.name(row);
    if (name.textContent !== called) name.replaceChildren(...breakable(called));
    const verdict = overlay?.describe(called) ?? "", cordoned = state.states[row] === CORDONED ? "cordoned" : "";
    say(note, [verdict || this.arrangement.occupants.describe(row), cordoned].filter(Boolean).join(" · "));
    card.classList.toggle("cordoned", Boolean(cordoned));
    card.classList.toggle("judged", Boolean(overlay));
    card.classList.toggle("dim", Boolean(overlay?.isDim(called)));
    card.style.setProperty("--verdict", overlay ? overlay.colour(called) : "");
    state.resources.forEach((resource, column) => this.#line(bars, lines, resource, state.use(column, row)));
  }

  #line(bars, lines, resource, use) {
    if (use === ABSENT) {
      lines.get(resource)?.line.remove();
      lines.delete(resource);
      return;
    }
    if (!lines.has(resource)) {
      const made = bar(0), value = element("span", { class: "value" });
      const line = element("span", { class: "line" }, element("span", { class: "what" }, ...breakable(resource)), made, value);
      lines.set(resource, { line, made, value });
      bars.append(line);
    }
    const { line, made, value } = lines.get(resource);
    line.classList.toggle("chosen", resource === this.arrangement.resource);
    setBar(made, use / 1000);
    say(value, `${Math.round(use / 10)}%`);
  }

  #key(event) {
    const cards = [...this.place.querySelectorAll(".card")], at = cards.indexOf(document.activeElement);
    if (at < 0) return;
    const across = cards.filter((card) => card.getBoundingClientRect().top === cards[0].getBoundingClientRect().top).length || 1;
    const to = {
      ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - across, ArrowDown: at + across, Home: 0, End: cards.length - 1,
    }[event.key];
    if (to === undefined || !cards[to]) return;
    event.preventDefault();
    cards.forEach((card, which) => { card.tabIndex = which === to ? 0 : -1; });
    cards[to].focus();
  }
}
