// Finding a pod or a node by a part of its name.

import { element, find } from "./elements.js";
import { read } from "./stream.js";

const PAUSE = 200;

export class Search {
  constructor({ openNode, openPod }) {
    this.input = find("search");
    this.list = find("found");
    this.open = { node: openNode, pod: openPod };
    this.hits = [];
    this.cursor = -1;
    this.serial = 0;
    this.input.addEventListener("input", () => this.#later());
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.#hide(), 150));
  }

  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#look(), PAUSE);
  }

  async #look() {
    const text = this.input.value.trim(), serial = ++this.serial;
    if (!text) return this.#hide();
    let told;
    try {
      told = await read(`api/find?text=${encodeURIComponent(text)}`);
    } catch {
      return this.#hide();
    }
    if (serial !== this.serial || !told) return;
    this.hits = [...told.nodes.map((name) => ["node", name]), ...told.pods.map((name) => ["pod", name])];
    this.cursor = this.hits.length ? 0 : -1;
    this.#show();
  }

  #show() {
    this.list.replaceChildren(...this.hits.map(([kind, name], at) => {
      const hit = element("li", { text: `${kind} ${name}`, role: "option", id: `hit-${at}`, "aria-selected": String(at === this.cursor) });
      hit.addEventListener("pointerdown", () => this.#choose(at));
      return hit;
    }));
    if (!this.hits.length) this.list.append(element("li", { text: "Nothing found", role: "option", "aria-disabled": "true" }));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    if (this.cursor >= 0) this.input.setAttribute("aria-activedescendant", `hit-${this.cursor}`);
  }

  #hide() {
    this.serial++;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  #choose(at) {
    const [kind, name] = this.hits[at];
    this.#hide();
    this.open[kind](name);
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.hits.length) {
      this.cursor = (this.cursor + step + this.hits.length) % this.hits.length;
      this.#show();
    } else if (event.key === "Enter" && this.cursor >= 0 && !this.list.hidden) {
      this.#choose(this.cursor);
    } else if (event.key === "Escape") {
      this.#hide();
      this.input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
