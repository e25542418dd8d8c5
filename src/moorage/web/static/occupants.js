// Whose pods are on each node: the namespace or owner that requests most of what is shown.

import { count, percent } from "./elements.js";
import { read } from "./stream.js";
import { u16, u32 } from "./state.js";

// Pods come and go: while nodes are grouped by them, they are asked for again, in milliseconds.
const EVERY = 5_000;
// No label begins so.
const MARK = "pods:";

export const BY_PODS = ["namespace", "owner"].map((by) => ({ key: `${MARK}${by}`, by }));

export class Occupants {
  // `wanted` says by what nodes are grouped, and which resource is shown; `tell` that there is news.
  constructor(wanted, tell) {
    Object.assign(this, { wanted, tell });
    this.question = "";
    this.text = "";
    // By row: { name, share, several }; null while it is on its way.
    this.rows = null;
    setInterval(() => { if (this.by && !document.hidden) this.#load(); }, EVERY);
  }

  // namespace or owner; empty if nodes are not grouped by pods.
  get by() {
    const { by } = this.wanted();
    return by.startsWith(MARK) ? by.slice(MARK.length) : "";
  }

  // The name by row; null if that is on its way, and `tell` says when it came.
  names() {
    const rows = this.#of();
    return rows && new Map([...rows].map(([row, { name }]) => [row, name]));
  }

  // What there is to say about one row.
  describe(row) {
    const found = this.by && this.#of()?.get(row);
    if (!found) return "";
    const part = found.share < 1 ? `, ${percent(found.share)} of it` : "";
    return found.several > 1 ? `${found.name}${part}; pods of ${count(found.several, this.by)}` : found.name;
  }

  // What the groups mean, for a legend.
  explain(rows) {
    const known = this.by && this.#of();
    if (!known) return "";
    const several = rows.filter((row) => known.get(row)?.several > 1).length;
    const mixed = several ? `${count(several, "node")} ${several === 1 ? "has" : "have"} pods of several ${this.by}s` : `no node has pods of several ${this.by}s`;
    return `A node is with the ${this.by} whose pods request most of its ${this.wanted().resource}; ${mixed}.`;
  }

  #of() {
    const { resource } = this.wanted(), question = `${this.by} ${resource}`;
    // Nothing is known of the cluster yet.
    if (!resource) return null;
    if (question !== this.question) {
      this.question = question;
      this.rows = null;
      this.text = "";
      this.#load();
    }
    return this.rows;
  }

  async #load() {
    const { question, by } = this, { resource } = this.wanted();
    let told;
    try {
      told = await read(`api/occupants?by=${by}&resource=${encodeURIComponent(resource)}`);
    } catch {
      // What cannot be read now is read another time.
      return;
    }
    const text = JSON.stringify(told);
    if (!told || question !== this.question || text === this.text) return;
    this.text = text;
    const rows = u32(told.rows), codes = u32(told.codes), shares = u16(told.shares), several = u32(told.counts);
    this.rows = new Map([...rows].map((row, at) => [row, { name: told.values[codes[at]], share: shares[at] / 1000, several: several[at] }]));
    this.tell();
  }
}
