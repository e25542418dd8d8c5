// Pods on their way from the queue to their nodes.

import { ink } from "./colours.js";
import { timed } from "./pace.js";

const DURATION = 700, MOST = 150;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Flights {
  constructor(canvas, from, to) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.from = from;
    this.to = to;
    this.flying = [];
    this.asked = false;
  }

  start(rows) {
    if (still.matches || document.hidden) return;
    const now = performance.now(), box = this.from.getBoundingClientRect();
    rows.forEach((row, at) => {
      const end = this.to(row);
      if (!end || this.flying.length >= MOST) return;
      // Spread over the time until the next message.
      const begin = now + (250 * at) / rows.length;
      this.flying.push({ begin, start: [box.left + 20, Math.max(0, box.top) + 20], end });
    });
    this.#ask();
  }

  #ask() {
    if (this.asked || !this.flying.length) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      timed("flights", () => this.#draw(now));
      this.#ask();
    });
  }

  #draw(now) {
    const { canvas, context } = this;
    if (canvas.width !== innerWidth || canvas.height !== innerHeight) {
      canvas.width = innerWidth;
      canvas.height = innerHeight;
    }
    context.clearRect(0, 0, canvas.width, canvas.height);
    this.flying = this.flying.filter((each) => now < each.begin + DURATION);
    context.fillStyle = ink().mark;
    for (const { begin, start, end } of this.flying) {
      const passed = Math.max(0, now - begin) / DURATION, eased = 1 - (1 - passed) ** 3;
      const x = start[0] + (end[0] - start[0]) * eased, y = start[1] + (end[1] - start[1]) * eased;
      context.fillRect(x - 2, y - 2, 5, 5);
    }
  }
}
