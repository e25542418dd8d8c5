// The picture as the server tells it: one message after the other is applied to it.

export const GONE = 0, OPEN = 1, CORDONED = 2, ABSENT = 0xffff;

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
export const u16 = (text) => new Uint16Array(bytes(text).buffer);
export const u32 = (text) => new Uint32Array(bytes(text).buffer);

// Events that are kept, and for how many seconds one goes on.
const EVENTS = 60, SAME = 20;

function grown(array, length, fill) {
  if (array.length >= length) return array;
  const more = new array.constructor(Math.max(length, 2 * array.length)).fill(fill);
  more.set(array);
  return more;
}

export class State {
  constructor() {
    this.resources = [];
    this.names = new Map();
    this.states = new Uint8Array(0);
    this.uses = [];
    this.queue = new Map();
    this.figures = null;
    this.samples = [];
    // What is requested and allocatable, by resource.
    this.totals = [];
    this.events = [];
  }

  // Returns what changed: rows (null for all of them), whether nodes came or went, the queue.
  apply(message) {
    const changed = { rows: [], members: false, queue: false, events: false, arrivals: message.arrivals ?? [] };
    if (message.reset) {
      this.queue.clear();
      this.samples = [];
      this.events = [];
      changed.queue = changed.events = true;
    }
    if (message.resources) this.#begin(message.resources, changed);
    if (message.nodes) this.#applyNodes(message.nodes, changed);
    if (message.queue) this.#applyQueue(message.queue, changed);
    if (message.figures) this.#applyFigures(message.figures, message.history ?? []);
    if (message.totals) this.totals = message.totals;
    for (const event of message.events ?? []) this.#note(event);
    changed.events ||= Boolean(message.events?.length);
    return changed;
  }

  name(row) {
    return this.names.get(row) ?? "";
  }

  // The use of a resource in thousandths, or ABSENT.
  use(column, row) {
    return this.uses[column]?.[row] ?? ABSENT;
  }

  #begin(resources, changed) {
    this.resources = resources;
    this.names.clear();
    this.states = new Uint8Array(0);
    this.uses = resources.map(() => new Uint16Array(0));
    changed.members = true;
  }

  #applyNodes(part, changed) {
    const rows = u32(part.rows), states = bytes(part.states), columns = part.uses.map(u16);
    const length = rows.reduce((most, row) => Math.max(most, row + 1), 0);
    this.states = grown(this.states, length, GONE);
    this.uses = this.uses.map((each) => grown(each, length, ABSENT));
    rows.forEach((row, at) => {
      if ((this.states[row] === GONE) !== (states[at] === GONE)) changed.members = true;
      this.states[row] = states[at];
      columns.forEach((column, which) => { this.uses[which][row] = column[at]; });
      if (states[at] === GONE) this.names.delete(row);
    });
    for (const [row, name] of Object.entries(part.names)) {
      this.names.set(Number(row), name);
      changed.members = true;
    }
    changed.rows = changed.members ? null : rows;
  }

  #applyQueue(part, changed) {
    for (const [number, key, place, attempts, ...indexes] of part.put ?? []) {
      const [reason, owner, group, nominated] = indexes.map((at) => part.texts[at]);
      this.queue.set(number, { number, key, place, attempts, reason, owner, group, nominated });
    }
    for (const number of part.gone ?? []) this.queue.delete(number);
    changed.queue = true;
  }

  #applyFigures(figures, history) {
    const samples = history.length ? history : this.samples;
    const last = samples.at(-1);
    if (!last || figures.sample[0] - last[0] >= 1) samples.push(figures.sample);
    if (samples.length > 300) samples.splice(0, samples.length - 300);
    this.samples = samples;
    this.figures = figures;
  }

  // What goes on for a while is one event with a count that grows. Each preemption has its own victims.
  #note(event) {
    const same = (each) => event.kind !== "preempting" && each.kind === event.kind && each.owner === event.owner && event.at - each.at < SAME
      && (event.kind === "placed" || each.text === event.text);
    const at = this.events.findLastIndex(same);
    const before = at < 0 ? null : this.events.splice(at, 1)[0];
    this.events.push({ ...event, count: (event.count ?? 1) + (before?.count ?? 0) });
    if (this.events.length > EVENTS) this.events.splice(0, this.events.length - EVENTS);
  }
}
