// Which nodes are shown, in which groups and in which order.

import { ABSENT, CORDONED } from "./state.js";
import { Labels } from "./labels.js";
import { Occupants } from "./occupants.js";

const byName = new Intl.Collator("en", { numeric: true });

// Without the label by which nodes are grouped, or without pods.
const NONE = "";

export class Arrangement {
  // `tell` is called when the arrangement is to be made anew.
  constructor(state, view, tell) {
    Object.assign(this, { state, view });
    this.labels = new Labels(tell);
    this.occupants = new Occupants(() => ({ by: view.get("by"), resource: this.resource }), tell);
    // { name, rows } each; one group without a title if nodes are not grouped.
    this.groups = [];
    // All rows in the order in which they are shown, and where each of them is.
    this.order = [];
    this.places = new Map();
    this.isReady = true;
  }

  get column() {
    return Math.max(0, this.state.resources.indexOf(this.view.get("resource")));
  }

  get resource() {
    return this.state.resources[this.column] ?? "";
  }

  get isGrouped() {
    return Boolean(this.view.get("by"));
  }

  arrange() {
    this.isReady = true;
    const rows = this.#filter([...this.state.names.keys()]).sort(this.#comparing());
    this.groups = this.#group(rows);
    this.order = this.groups.flatMap((group) => group.rows);
    this.places = new Map(this.order.map((row, at) => [row, at]));
  }

  // The mean use of the resource that is shown, from 0 to 1; null if no node has it.
  mean(rows) {
    const uses = rows.map((row) => this.state.use(this.column, row)).filter((use) => use !== ABSENT);
    return uses.length ? uses.reduce((sum, use) => sum + use, 0) / uses.length / 1000 : null;
  }

  describe(row) {
    const { state } = this, use = state.use(this.column, row);
    const text = use === ABSENT ? `has no ${this.resource}` : `${(use / 10).toFixed(1)}% of ${this.resource}`;
    const whose = this.occupants.describe(row);
    return `${state.name(row)}: ${text}${state.states[row] === CORDONED ? ", cordoned" : ""}${whose ? `; ${whose}` : ""}`;
  }

  // The title of a group.
  title({ name }) {
    return name || (this.occupants.by ? "without pods" : "without the label");
  }

  #filter(rows) {
    const words = this.view.get("filter").trim().split(/\s+/).filter(Boolean);
    return words.reduce((left, word) => left.filter(this.#matching(word)), rows);
  }

  // A part of the name, `label=value`, or `is:cordoned`.
  #matching(word) {
    if (word === "is:cordoned") return (row) => this.state.states[row] === CORDONED;
    const [, key, value] = /^([^=]+)=(.*)$/.exec(word) ?? [];
    if (key === undefined) return (row) => this.state.name(row).includes(word);
    const values = this.#values(key);
    return (row) => values.get(row) === value;
  }

  #comparing() {
    const { state, column } = this;
    const name = (one, other) => byName.compare(state.name(one), state.name(other));
    const use = (row) => { const found = state.use(column, row); return found === ABSENT ? -1 : found; };
    return {
      most: (one, other) => use(other) - use(one) || name(one, other),
      least: (one, other) => use(one) - use(other) || name(one, other),
    }[this.view.get("sort")] ?? name;
  }

  #group(rows) {
    const key = this.view.get("by");
    if (!key) return [{ name: null, rows }];
    const values = this.#groupsOf(key), groups = new Map();
    for (const row of rows) {
      const name = values.get(row) ?? NONE;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    // Nodes without the label, or without pods, come last.
    const order = ([one], [other]) => (one === NONE) - (other === NONE) || byName.compare(one, other);
    return [...groups].sort(order).map(([name, of]) => ({ name, rows: of }));
  }

  #groupsOf(key) {
    if (!this.occupants.by) return this.#values(key);
    const names = this.occupants.names();
    if (names === null) this.isReady = false;
    return names ?? new Map();
  }

  #values(key) {
    const values = this.labels.of(key);
    if (values === null) this.isReady = false;
    return values ?? new Map();
  }
}
