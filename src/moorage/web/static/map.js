// The nodes as cells on a canvas, of which only those that changed are drawn again.

import { ABSENT, CORDONED } from "./state.js";
import { colour, ink, inkOn } from "./colours.js";
import { number } from "./elements.js";
import { timed } from "./pace.js";

const SMALLEST = 5, LARGEST = 64, HEAD = 26, GAP = 10;
// From this size on a cell has room for a number.
const WRITABLE = 34;

export class NodeMap {
  constructor(canvas, arrangement, { open, tell }) {
    Object.assign(this, { canvas, arrangement, open, tell });
    this.state = arrangement.state;
    this.overlay = null;
    this.cursor = 0;
    this.size = LARGEST;
    this.across = 1;
    this.dirty = new Set();
    this.all = true;
    this.asked = false;
    // The top of each group's cells, and the place of its first one.
    this.bands = [];
    this.context = canvas.getContext("2d", { alpha: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("click", (event) => this.#point(event, true));
    canvas.addEventListener("pointermove", (event) => this.#point(event, false));
    canvas.addEventListener("focus", () => { this.#announce(); this.#mark(this.cursor); });
    canvas.addEventListener("blur", () => this.#mark(this.cursor));
  }

  redraw() {
    this.all = true;
    this.#ask();
  }

  // Rows that changed; null for all of them.
  changed(rows) {
    if (rows === null) return this.redraw();
    for (const row of rows) {
      const at = this.arrangement.places.get(row);
      if (at !== undefined) this.dirty.add(at);
    }
    if (rows.length) this.#ask();
  }

  // The middle of a row's cell in the window; null if it is not shown.
  middle(row) {
    const at = this.arrangement.places.get(row);
    if (at === undefined || !this.bands.length) return null;
    const box = this.canvas.getBoundingClientRect(), [x, y] = this.#corner(at);
    return [box.left + x + this.size / 2, box.top + y + this.size / 2];
  }

  get #order() {
    return this.arrangement.order;
  }

  #ask() {
    if (this.asked || this.canvas.hidden) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      timed("map", () => (this.all ? this.#drawAll() : this.#drawDirty()));
    });
  }

  // The largest cells with which all of the map can be seen at once, if there are any.
  #lay() {
    const { groups, isGrouped } = this.arrangement, frame = this.canvas.parentElement;
    const width = frame.clientWidth, top = frame.getBoundingClientRect().top + scrollY;
    const room = Math.max(260, innerHeight - Math.min(top, 0.45 * innerHeight) - 60);
    let size = LARGEST;
    while (size > SMALLEST && heightOf(groups, width, size, isGrouped) > room) size--;
    this.size = size;
    this.across = Math.max(1, Math.floor(width / size));
    const height = Math.max(1, heightOf(groups, width, size, isGrouped)), density = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(height * density);
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(density, 0, 0, density, 0, 0);
    this.context.fillStyle = ink().card;
    this.context.fillRect(0, 0, width, height);
    this.bands = [];
    let y = 0, first = 0;
    for (const group of groups) {
      if (isGrouped) y += HEAD;
      this.bands.push({ top: y, first, group });
      y += Math.ceil(group.rows.length / this.across) * size + (isGrouped ? GAP : 0);
      first += group.rows.length;
    }
  }

  #drawAll() {
    this.all = false;
    this.dirty.clear();
    this.cursor = Math.min(this.cursor, Math.max(0, this.#order.length - 1));
    this.#lay();
    if (this.arrangement.isGrouped) this.bands.forEach((band) => this.#head(band));
    for (let at = 0; at < this.#order.length; at++) this.#cell(at);
  }

  #drawDirty() {
    for (const at of this.dirty) this.#cell(at);
    this.dirty.clear();
  }

  #head({ top, group }) {
    const { context } = this, width = this.canvas.clientWidth, name = this.arrangement.title(group);
    const mean = this.arrangement.mean(group.rows);
    const rest = `${number(group.rows.length)}${mean === null ? "" : ` · ${number(100 * mean)}%`}`;
    context.textBaseline = "middle";
    context.font = "13px system-ui, sans-serif";
    context.fillStyle = ink().faint;
    context.textAlign = "right";
    context.fillText(rest, width - 2, top - HEAD / 2);
    context.textAlign = "left";
    context.font = "600 13px system-ui, sans-serif";
    context.fillStyle = ink().ink;
    context.fillText(name, 0, top - HEAD / 2, Math.max(40, width - 90));
  }

  #corner(at) {
    let low = 0, high = this.bands.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.bands[middle].first <= at) low = middle;
      else high = middle - 1;
    }
    const { top, first } = this.bands[low], within = at - first;
    return [(within % this.across) * this.size, top + Math.floor(within / this.across) * this.size];
  }

  #cell(at) {
    const { context, state, size, overlay } = this, row = this.#order[at], name = state.name(row);
    const [x, y] = this.#corner(at), inner = size - (size > 8 ? 2 : 1), colours = ink();
    context.fillStyle = colours.card;
    context.fillRect(x, y, inner, inner);
    context.globalAlpha = overlay?.isDim(name) ? 0.18 : 1;
    if (overlay) this.#verdict(x, y, inner, name);
    else this.#use(x, y, inner, row);
    if (state.states[row] === CORDONED) this.#stroke(x, y, inner);
    context.globalAlpha = 1;
    if (at === this.cursor && document.activeElement === this.canvas) {
      context.strokeStyle = colours.mark;
      context.lineWidth = Math.min(3, inner / 3);
      context.strokeRect(x + 1, y + 1, inner - 2, inner - 2);
    }
  }

  #use(x, y, inner, row) {
    const { context } = this, use = this.state.use(this.arrangement.column, row);
    if (use === ABSENT) {
      context.strokeStyle = ink().line;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
      return;
    }
    this.#box(x, y, inner, colour(use));
    if (this.size >= WRITABLE) this.#write(`${Math.round(use / 10)}%`, x, y, inner, inkOn(use));
  }

  // Nodes that take the pod are whole cells, others are smaller: colour is not all that tells.
  #verdict(x, y, inner, name) {
    const { overlay } = this, takes = overlay.category(name)?.at === -1;
    const less = takes || inner < 6 ? 0 : Math.max(1, Math.round(inner / 5));
    this.#box(x + less, y + less, inner - 2 * less, overlay.colour(name));
  }

  #box(x, y, inner, fill) {
    this.context.fillStyle = fill;
    if (inner < 12) return this.context.fillRect(x, y, inner, inner);
    this.context.beginPath();
    this.context.roundRect(x, y, inner, inner, Math.min(6, inner / 8));
    this.context.fill();
  }

  #write(text, x, y, inner, fill) {
    const { context } = this;
    context.font = `${this.size > 48 ? 13 : 11}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = fill;
    context.fillText(text, x + inner / 2, y + inner / 2 + 1);
  }

  #stroke(x, y, inner) {
    const { context } = this;
    context.strokeStyle = ink().mark;
    context.lineWidth = Math.max(1, Math.min(3, this.size / 12));
    context.beginPath();
    context.moveTo(x + 2, y + inner - 2);
    context.lineTo(x + inner - 2, y + 2);
    context.stroke();
  }

  #mark(at) {
    this.dirty.add(at);
    this.#ask();
  }

  #move(to) {
    if (to < 0 || to >= this.#order.length) return;
    this.#mark(this.cursor);
    this.cursor = to;
    this.#mark(to);
    this.#announce();
    const [, y] = this.#corner(to), top = this.canvas.getBoundingClientRect().top + y;
    if (top < 0 || top + this.size > innerHeight) scrollBy({ top: top - innerHeight / 2 });
  }

  #announce() {
    if (this.#order.length) this.tell(this.#order[this.cursor]);
  }

  #key(event) {
    const last = this.#order.length - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across };
    const jumps = { Home: 0, End: last };
    if (event.key in steps) this.#move(this.cursor + steps[event.key]);
    else if (event.key in jumps) this.#move(jumps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && last >= 0) this.open(this.#order[this.cursor]);
    else return;
    event.preventDefault();
  }

  #point({ offsetX, offsetY }, opens) {
    const at = this.#under(offsetX, offsetY);
    if (at === null) return;
    if (opens) {
      this.#move(at);
      this.open(this.#order[at]);
    } else {
      this.tell(this.#order[at]);
    }
  }

  #under(x, y) {
    const band = this.bands.findLast(({ top }) => top <= y), across = Math.floor(x / this.size);
    if (!band || across >= this.across) return null;
    const within = Math.floor((y - band.top) / this.size) * this.across + across;
    return within < band.group.rows.length ? band.first + within : null;
  }
}

function heightOf(groups, width, size, isGrouped) {
  const across = Math.max(1, Math.floor(width / size));
  const extra = isGrouped ? HEAD + GAP : 0;
  return groups.reduce((sum, { rows }) => sum + Math.ceil(rows.length / across) * size + extra, 0);
}
