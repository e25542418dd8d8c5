// Small charts of rates over the last minutes.

import { ink } from "./colours.js";
import { timed } from "./pace.js";

const DECISIONS = 1, BATCH = 2, CLASS = 3, PLACED = 4;
// Rates over so many samples, because bursts come between two of them.
const OVER = 2;
// A chart is at least so many samples wide, a minute; then it shrinks until it has five.
const LEAST = 60;

const rate = (which) => (one, other) => (other[which] - one[which]) / (other[0] - one[0]);
const share = (which) => (one, other) =>
  other[DECISIONS] > one[DECISIONS] ? (other[which] - one[which]) / (other[DECISIONS] - one[DECISIONS]) : null;

const number = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
const percent = (value) => `${(100 * value).toFixed(0)}%`;

const CHARTS = {
  decisions: { of: rate(DECISIONS), says: number },
  placed: { of: rate(PLACED), says: number },
  batch: { of: share(BATCH), says: percent, top: 1 },
  class: { of: share(CLASS), says: percent, top: 1 },
};

export class Charts {
  constructor(find) {
    this.parts = Object.entries(CHARTS).map(([name, chart]) => ({
      ...chart, canvas: find(`chart-${name}`), now: find(`now-${name}`),
    }));
    this.drawn = 0;
  }

  draw(samples, { anyway = false } = {}) {
    const last = samples.at(-1)?.[0] ?? 0;
    if (document.hidden || (last === this.drawn && !anyway)) return;
    this.drawn = last;
    requestAnimationFrame(() => timed("charts", () => {
      for (const part of this.parts) drawOne(part, samples);
    }));
  }
}

function drawOne({ canvas, now, of, says, top }, samples) {
  const values = samples.slice(OVER).map((other, at) => of(samples[at], other));
  const known = values.filter((each) => each !== null);
  now.textContent = known.length ? says(known.at(-1)) : "–";
  const density = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * density;
  canvas.height = height * density;
  const context = canvas.getContext("2d"), colours = ink();
  context.scale(density, density);
  const most = top ?? Math.max(1, ...known), step = width / Math.max(LEAST, values.length - 1);
  const x = (at) => width - (values.length - 1 - at) * step, y = (value) => height - 3 - (value / most) * (height - 8);
  context.strokeStyle = colours.line;
  context.lineWidth = 0.5;
  context.strokeRect(0, height - 2.5, width, 0);
  context.strokeStyle = colours.chart;
  context.lineWidth = 1.5;
  context.beginPath();
  let pen = false;
  values.forEach((value, at) => {
    if (value === null) { pen = false; return; }
    if (pen) context.lineTo(x(at), y(value));
    else { context.moveTo(x(at), y(value)); context.lineTo(x(at) + 1, y(value)); }
    pen = true;
  });
  context.stroke();
}
