// Labels of nodes: which there are, and the value that each row has. They are asked for when wanted.

import { read } from "./stream.js";
import { u32 } from "./state.js";

// Nodes come and go one by one: after a change, wait for others before asking again.
const PAUSE = 1_000;

export class Labels {
  constructor(tell) {
    this.tell = tell;
    this.keys = [];
    // By key: a map from row to value, or null while it is on its way.
    this.values = new Map();
  }

  // Nodes came or went: what is known of labels may be out of date.
  changed() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.#refresh();
    }, PAUSE);
  }

  async list() {
    const told = await ask("api/labels");
    if (told) this.keys = told;
    return this.keys;
  }

  // The values of a label by row; null if they are on their way, and `tell` says when they came.
  of(key) {
    if (!this.values.has(key)) {
      this.values.set(key, null);
      this.#load(key);
    }
    return this.values.get(key);
  }

  async #load(key) {
    const told = await ask(`api/labels?key=${encodeURIComponent(key)}`);
    const values = new Map();
    if (told) {
      const rows = u32(told.rows), codes = u32(told.codes);
      rows.forEach((row, at) => values.set(row, told.values[codes[at]]));
    }
    this.values.set(key, values);
    this.tell();
  }

  async #refresh() {
    await Promise.all([...this.values.keys()].map((key) => this.#load(key)));
  }
}

// What cannot be read now is read another time.
async function ask(path) {
  try {
    return await read(path);
  } catch {
    return null;
  }
}
