// What is requested of each resource in the whole cluster. Pressing one shows it on the map.

import { amount, bar, breakable, element, number, percent, say, setBar } from "./elements.js";

export class Totals {
  constructor(place, state, view) {
    Object.assign(this, { place, state, view });
    this.tiles = new Map();
    view.listen((changed) => { if (changed.has("resource")) this.draw(); });
  }

  draw() {
    const { resources, totals } = this.state;
    if ([...this.tiles.keys()].join() !== resources.join()) this.#make(resources);
    const shown = resources.includes(this.view.get("resource")) ? this.view.get("resource") : resources[0];
    resources.forEach((name, at) => {
      const [asked, whole] = totals[at] ?? [0, 0], { tile, share, of, fill } = this.tiles.get(name);
      say(share, percent(whole ? asked / whole : 0));
      say(of, `${amount(name, asked)} of ${amount(name, whole)}`);
      setBar(fill, whole ? asked / whole : 0);
      tile.setAttribute("aria-pressed", String(name === shown));
    });
  }

  #make(resources) {
    this.tiles = new Map(resources.map((name) => {
      const share = element("b"), of = element("span", { class: "hint" }), fill = bar(0);
      const tile = element("button", { type: "button", class: "tile" }, element("span", {}, ...breakable(name)), share, of, fill);
      tile.addEventListener("click", () => this.view.set({ resource: name }));
      return [name, { tile, share, of, fill }];
    }));
    this.place.replaceChildren(...[...this.tiles.values()].map(({ tile }) => element("li", {}, tile)));
  }
}

export function showFigures(figures, find) {
  const waiting = Object.values(figures.waiting).reduce((sum, each) => sum + each, 0);
  const shown = { nodes: figures.nodes, pods: figures.pods, waiting, flying: figures.inFlight };
  for (const [name, value] of Object.entries(shown)) say(find(`figure-${name}`), number(value));
}
