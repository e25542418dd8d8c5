// The waiting pods as a list of which only what is in sight exists.

import { timed } from "./pace.js";

const HEIGHT = 72, SPARE = 4;
const BACKOFF = new Set(["backoff", "error backoff"]);
const SAYS = { active: "active", backoff: "backing off", "error backoff": "backing off", unschedulable: "unschedulable", gated: "gated", "in flight": "being placed" };

export class QueueList {
  constructor({ list, space, count }, state, open) {
    Object.assign(this, { list, space, count, state, open });
    this.place = "";
    this.pods = [];
    this.cursor = 0;
    this.lines = new Map();
    this.asked = false;
    this.stale = false;
    list.addEventListener("scroll", () => this.#ask(), { passive: true });
    list.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#ask()).observe(list);
  }

  changed() {
    this.stale = true;
    this.#ask();
  }

  show(place) {
    this.place = place;
    this.list.scrollTop = 0;
    this.cursor = 0;
    this.changed();
  }

  #ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      timed("queue", () => this.#draw());
    });
  }

  #filter() {
    this.stale = false;
    const wanted = (pod) => pod.place === this.place || (this.place === "backoff" && BACKOFF.has(pod.place));
    const all = this.state.queue.values();
    this.pods = this.place ? [...all].filter(wanted) : [...all];
    this.cursor = Math.min(this.cursor, Math.max(0, this.pods.length - 1));
    this.space.style.height = `${this.pods.length * HEIGHT}px`;
    this.count.textContent = this.pods.length === 1 ? "1 pod" : `${this.pods.length.toLocaleString("en")} pods`;
  }

  #draw() {
    if (this.stale) this.#filter();
    const first = Math.max(0, Math.floor(this.list.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(this.pods.length, first + Math.ceil(this.list.clientHeight / HEIGHT) + 2 * SPARE);
    for (const [at, line] of this.lines) {
      if (at < first || at >= last) {
        line.remove();
        this.lines.delete(at);
      }
    }
    for (let at = first; at < last; at++) this.#fill(at);
    const active = this.lines.get(this.cursor);
    if (active) this.list.setAttribute("aria-activedescendant", active.id);
    else this.list.removeAttribute("aria-activedescendant");
  }

  #fill(at) {
    const pod = this.pods[at];
    let line = this.lines.get(at);
    if (!line) {
      line = document.createElement("div");
      line.className = "pod";
      line.setAttribute("role", "option");
      line.append(document.createElement("div"), document.createElement("div"));
      line.lastChild.className = "why";
      line.id = `pod-${at}`;
      line.style.transform = `translateY(${at * HEIGHT}px)`;
      this.lines.set(at, line);
      this.list.append(line);
    }
    const tries = pod.attempts > 1 ? `, ${pod.attempts} attempts` : "";
    const why = `${SAYS[pod.place] ?? pod.place}${tries}${pod.reason ? ` · ${pod.reason}` : ""}`;
    if (line.firstChild.textContent !== pod.key) line.firstChild.textContent = pod.key;
    if (line.lastChild.textContent !== why) line.lastChild.textContent = why;
    line.setAttribute("aria-selected", String(at === this.cursor));
    line.setAttribute("aria-setsize", this.pods.length);
    line.setAttribute("aria-posinset", at + 1);
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / HEIGHT) - 1), last = this.pods.length - 1;
    const to = {
      ArrowUp: this.cursor - 1, ArrowDown: this.cursor + 1, PageUp: this.cursor - page,
      PageDown: this.cursor + page, Home: 0, End: last,
    }[event.key];
    if (to !== undefined) this.#move(Math.max(0, Math.min(last, to)));
    else if (event.key === "Enter" && this.pods[this.cursor]) this.open(this.pods[this.cursor].key);
    else return;
    event.preventDefault();
  }

  #move(to) {
    this.cursor = to;
    const top = to * HEIGHT, { scrollTop, clientHeight } = this.list;
    if (top < scrollTop) this.list.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight) this.list.scrollTop = top + HEIGHT - clientHeight;
    this.#ask();
  }

  #click(event) {
    const line = event.target.closest(".pod");
    if (!line) return;
    for (const [at, each] of this.lines) if (each === line) this.#move(at);
    this.open(line.firstChild.textContent);
  }
}
