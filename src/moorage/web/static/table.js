// The nodes as a table, some at a time: for those who cannot see the map.

import { ABSENT, CORDONED } from "./state.js";
import { element, find, link } from "./elements.js";

const PAGE = 50;

export class NodeTable {
  constructor(arrangement, open) {
    Object.assign(this, { arrangement, open, state: arrangement.state });
    this.first = 0;
    this.details = find("table");
    this.details.addEventListener("toggle", () => this.draw());
    find("table-back").addEventListener("click", () => this.#turn(-PAGE));
    find("table-on").addEventListener("click", () => this.#turn(PAGE));
  }

  #turn(by) {
    this.first += by;
    this.draw();
  }

  // Drawn when it is opened and turned, not while somebody reads it.
  draw() {
    if (!this.details.open) return;
    const { state } = this, { order } = this.arrangement, last = Math.max(0, order.length - 1);
    this.first = Math.max(0, Math.min(last - (last % PAGE), this.first));
    const rows = order.slice(this.first, this.first + PAGE);
    const heads = ["Node", ...state.resources].map((text) => element("th", { text, scope: "col" }));
    find("table-head").replaceChildren(...heads);
    find("table-body").replaceChildren(...rows.map((row) => this.#line(row)));
    find("table-range").textContent = `${rows.length ? this.first + 1 : 0}–${this.first + rows.length} of ${order.length}`;
  }

  #line(row) {
    const { state } = this, name = state.name(row);
    const head = element("th", { scope: "row" }, link(name, () => this.open(name)));
    if (state.states[row] === CORDONED) head.append(" (cordoned)");
    const uses = state.resources.map((resource, column) => {
      const use = state.use(column, row);
      return element("td", { text: use === ABSENT ? "–" : `${(use / 10).toFixed(1)}%`, "data-label": resource });
    });
    return element("tr", {}, head, ...uses);
  }
}
