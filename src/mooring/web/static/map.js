// The nodes as cells on a canvas, of which only those that changed are drawn again.

import { ABSENT, CORDONED } from "./state.js";
import { colour, ink } from "./colours.js";
import { timed } from "./pace.js";

const SMALLEST = 5, LARGEST = 44;

export class NodeMap {
  constructor(canvas, state, { open, tell }) {
    this.canvas = canvas;
    this.state = state;
    this.column = 0;
    this.cursor = 0;
    this.size = LARGEST;
    this.across = 1;
    this.dirty = new Set();
    this.all = true;
    this.asked = false;
    this.context = canvas.getContext("2d", { alpha: false });
    this.tell = tell;
    this.open = open;
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("click", (event) => this.#point(event, true));
    canvas.addEventListener("pointermove", (event) => this.#point(event, false));
    canvas.addEventListener("focus", () => { this.#announce(); this.#mark(this.cursor); });
    canvas.addEventListener("blur", () => this.#mark(this.cursor));
    new ResizeObserver(() => this.redraw()).observe(canvas.parentElement);
  }

  redraw() {
    this.all = true;
    this.#ask();
  }

  // Rows that changed; null for all of them.
  changed(rows) {
    if (rows === null) return this.redraw();
    for (const row of rows) {
      const at = this.state.places.get(row);
      if (at !== undefined) this.dirty.add(at);
    }
    if (rows.length) this.#ask();
  }

  select(column) {
    this.column = column;
    this.redraw();
  }

  // The middle of a row's cell in the window; null if it is not shown.
  middle(row) {
    const at = this.state.places.get(row);
    if (at === undefined) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = this.#corner(at);
    return [box.left + x + this.size / 2, box.top + y + this.size / 2];
  }

  describe(at) {
    const { state } = this, row = state.order[at];
    const use = state.use(this.column, row), resource = state.resources[this.column] ?? "";
    const told = use === ABSENT ? `has no ${resource}` : `${(use / 10).toFixed(1)}% of ${resource}`;
    return `${state.name(row)}: ${told}${state.states[row] === CORDONED ? ", cordoned" : ""}`;
  }

  #ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      timed("map", () => (this.all ? this.#drawAll() : this.#drawDirty()));
    });
  }

  #lay() {
    const width = this.canvas.parentElement.clientWidth, count = this.state.order.length || 1;
    const height = Math.max(240, 0.58 * innerHeight);
    let size = LARGEST;
    while (size > SMALLEST && Math.ceil(count / Math.max(1, Math.floor(width / size))) * size > height) size--;
    this.size = size;
    this.across = Math.max(1, Math.floor(width / size));
    const rows = Math.ceil(count / this.across), density = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(rows * size * density);
    this.canvas.style.height = `${rows * size}px`;
    this.context.setTransform(density, 0, 0, density, 0, 0);
    this.context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--card");
    this.context.fillRect(0, 0, width, rows * size);
  }

  #drawAll() {
    this.all = false;
    this.dirty.clear();
    this.cursor = Math.min(this.cursor, Math.max(0, this.state.order.length - 1));
    this.#lay();
    for (let at = 0; at < this.state.order.length; at++) this.#cell(at);
  }

  #drawDirty() {
    for (const at of this.dirty) this.#cell(at);
    this.dirty.clear();
  }

  #corner(at) {
    return [(at % this.across) * this.size, Math.floor(at / this.across) * this.size];
  }

  #cell(at) {
    const { context, state, size } = this, row = state.order[at];
    const [x, y] = this.#corner(at), inner = size - (size > 8 ? 2 : 1);
    const use = state.use(this.column, row), colours = ink();
    context.fillStyle = use === ABSENT ? colours.line : colour(use);
    context.fillRect(x, y, inner, inner);
    if (use === ABSENT && inner > 3) {
      context.fillStyle = colour(0);
      context.fillRect(x + 1, y + 1, inner - 2, inner - 2);
    }
    if (state.states[row] === CORDONED) {
      context.strokeStyle = colours.mark;
      context.lineWidth = Math.max(1, size / 10);
      context.beginPath();
      context.moveTo(x + 1, y + inner - 1);
      context.lineTo(x + inner - 1, y + 1);
      context.stroke();
    }
    if (at === this.cursor && document.activeElement === this.canvas) {
      context.strokeStyle = colours.focus;
      context.lineWidth = Math.min(3, inner / 3);
      context.strokeRect(x + 1, y + 1, inner - 2, inner - 2);
    }
  }

  #mark(at) {
    this.dirty.add(at);
    this.#ask();
  }

  #move(to) {
    if (to < 0 || to >= this.state.order.length) return;
    this.#mark(this.cursor);
    this.cursor = to;
    this.#mark(to);
    this.#announce();
    const [, y] = this.#corner(to), box = this.canvas.getBoundingClientRect();
    const top = box.top + y;
    if (top < 0 || top + this.size > innerHeight) scrollBy({ top: top - innerHeight / 2 });
  }

  #announce() {
    if (this.state.order.length) this.tell(this.describe(this.cursor));
  }

  #key(event) {
    const last = this.state.order.length - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across };
    const jumps = { Home: 0, End: last };
    if (event.key in steps) this.#move(this.cursor + steps[event.key]);
    else if (event.key in jumps) this.#move(jumps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && last >= 0) this.#open(this.cursor);
    else return;
    event.preventDefault();
  }

  #point(event, opens) {
    const across = Math.floor(event.offsetX / this.size);
    const at = Math.floor(event.offsetY / this.size) * this.across + across;
    if (across >= this.across || at < 0 || at >= this.state.order.length) return;
    if (opens) {
      this.#move(at);
      this.#open(at);
    } else {
      this.tell(this.describe(at));
    }
  }

  #open(at) {
    this.open(this.state.name(this.state.order[at]));
  }
}
