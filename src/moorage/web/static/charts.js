// Charts of the last minutes, with a scale, times and values. Pointing at one, or the arrow keys, read it.

import { ink } from "./colours.js";
import { clock, element, number, percent, say } from "./elements.js";
import { timed } from "./pace.js";

const TIME = 0, DECISIONS = 1, BATCH = 2, CLASS = 3, PLACED = 4, WAITING = 5;
// Rates over so many samples, because bursts come between two of them.
const OVER = 2;
// A chart is at least a minute wide; then it shrinks until it has five.
const LEAST = 60;
const LEFT = 44, BOTTOM = 18, TOP = 8;

const rate = (which) => (one, other) => (other[which] - one[which]) / (other[TIME] - one[TIME]);
const level = (which) => (_, other) => other[which];
const share = (which) => (one, other) =>
  other[DECISIONS] > one[DECISIONS] ? (other[which] - one[which]) / (other[DECISIONS] - one[DECISIONS]) : null;

const amount = (value) => number(value, value < 10 ? 1 : 0);

const CHARTS = [
  { id: "decisions", title: "Decisions per second", says: amount, series: [{ of: rate(DECISIONS) }] },
  { id: "placed", title: "Pods placed per second", says: amount, series: [{ of: rate(PLACED) }] },
  { id: "waiting", title: "Pods that wait", says: amount, series: [{ of: level(WAITING) }] },
  {
    id: "reuse", title: "Decided by reuse", says: percent, top: 1,
    series: [{ of: share(BATCH), name: "batch" }, { of: share(CLASS), name: "class" }],
  },
];

export class Charts {
  constructor(place) {
    this.parts = CHARTS.map((chart) => new Chart(chart, place));
    this.drawn = 0;
  }

  draw(samples, { anyway = false } = {}) {
    const last = samples.at(-1)?.[TIME] ?? 0;
    if (document.hidden || (last === this.drawn && !anyway)) return;
    this.drawn = last;
    requestAnimationFrame(() => timed("charts", () => this.parts.forEach((part) => part.draw(samples))));
  }
}

class Chart {
  constructor(chart, place) {
    Object.assign(this, chart);
    this.samples = [];
    // The sample that is read, counted from the newest; null if none is.
    this.read = null;
    this.now = element("b", { id: `now-${chart.id}`, text: "–" });
    this.canvas = element("canvas", {
      id: `chart-${chart.id}`, tabindex: 0, role: "img", "aria-label": `${chart.title}, the last minutes. Arrow keys read values.`,
    });
    this.readout = element("p", { class: "hint readout", "aria-live": "polite" });
    const caption = element("figcaption", {}, element("span", { text: chart.title }), this.now);
    place.append(element("figure", {}, caption, this.canvas, this.readout));
    this.canvas.addEventListener("pointermove", ({ offsetX }) => this.#readAt(offsetX));
    this.canvas.addEventListener("pointerleave", () => this.#readFrom(null));
    this.canvas.addEventListener("blur", () => this.#readFrom(null));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.draw(this.samples)).observe(this.canvas);
  }

  draw(samples) {
    this.samples = samples;
    this.values = this.series.map(({ of }) => samples.slice(OVER).map((other, at) => of(samples[at], other)));
    const lasts = this.values.map((values) => values.findLast((each) => each !== null));
    say(this.now, lasts.every((each) => each === undefined) ? "–" : this.#text(lasts));
    this.#paint();
    this.#sayRead();
  }

  #text(values) {
    const texts = values.map((value) => (value === undefined || value === null ? "–" : this.says(value)));
    return texts.map((text, at) => [this.series[at].name, text].filter(Boolean).join(" ")).join(", ");
  }

  #paint() {
    const { canvas } = this, density = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * density;
    canvas.height = height * density;
    const context = canvas.getContext("2d"), length = this.values[0].length;
    context.scale(density, density);
    const known = this.values.flat().filter((each) => each !== null);
    const most = this.top ?? nice(Math.max(1, ...known)), step = (width - LEFT - 4) / Math.max(LEAST, length - 1);
    this.x = (at) => width - 4 - (length - 1 - at) * step;
    this.step = step;
    const y = (value) => height - BOTTOM - (value / most) * (height - BOTTOM - TOP);
    this.#axes(context, width, most, y);
    if (!known.length) return write(context, "Nothing to show yet", LEFT + 8, y(0.75 * most), "left");
    this.values.forEach((values, which) => this.#line(context, values, y, which));
    if (this.read === null) return;
    const at = length - 1 - this.read;
    context.strokeStyle = ink().faint;
    context.strokeRect(this.x(at), TOP, 0, height - BOTTOM - TOP);
  }

  #axes(context, width, most, y) {
    const { line } = ink();
    context.lineWidth = 1;
    for (const value of [0, most / 2, most]) {
      context.strokeStyle = line;
      context.globalAlpha = value ? 0.4 : 1;
      context.strokeRect(LEFT, Math.round(y(value)) + 0.5, width - LEFT - 4, 0);
      context.globalAlpha = 1;
      write(context, this.says(value), LEFT - 6, y(value), "right");
    }
    this.#times(context, width, y(0));
  }

  // The minutes, and the time of the newest value.
  #times(context, width, bottom) {
    const samples = this.samples.slice(OVER), end = width - 4;
    if (samples.length) write(context, clock(samples.at(-1)[TIME]), end, bottom + 11, "right");
    samples.forEach((sample, at) => {
      const second = Math.floor(sample[TIME]), before = Math.floor(samples[at - 1]?.[TIME] ?? second), x = this.x(at);
      if (Math.floor(second / 60) === Math.floor(before / 60)) return;
      context.strokeStyle = ink().line;
      context.strokeRect(x, bottom, 0, 4);
      if (x > LEFT + 20 && x < end - 70) write(context, clock(second).slice(0, 5), x, bottom + 11, "center");
    });
  }

  #line(context, values, y, which) {
    const colours = ink(), stroke = which ? colours.other : colours.chart;
    context.strokeStyle = stroke;
    context.lineWidth = 1.75;
    context.setLineDash(which ? [5, 3] : []);
    context.beginPath();
    let pen = false;
    values.forEach((value, at) => {
      if (value === null) { pen = false; return; }
      if (pen) context.lineTo(this.x(at), y(value));
      else { context.moveTo(this.x(at), y(value)); context.lineTo(this.x(at) + 1, y(value)); }
      pen = true;
    });
    context.stroke();
    context.setLineDash([]);
  }

  #readAt(x) {
    const length = this.values?.[0].length ?? 0, back = Math.round((this.canvas.clientWidth - 4 - x) / (this.step || 1));
    this.#readFrom(back >= 0 && back < length ? back : null);
  }

  #readFrom(back) {
    this.read = back;
    if (this.values) this.#paint();
    this.#sayRead();
  }

  #sayRead() {
    const sample = this.read === null ? null : this.samples.at(-1 - this.read);
    say(this.readout, sample ? `${clock(sample[TIME])}: ${this.#text(this.values.map((values) => values.at(-1 - this.read)))}` : "");
  }

  #key(event) {
    const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    if (!step || !this.values?.[0].length) return;
    event.preventDefault();
    this.#readFrom(Math.max(0, Math.min(this.values[0].length - 1, (this.read ?? -1) + step)));
  }
}

// The next number that people like on a scale.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
}

function write(context, text, x, y, align) {
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = ink().faint;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}
