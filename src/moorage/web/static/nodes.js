// The nodes: as cards while there are few, else as a map; what their colours mean; and a table.

import { Arrangement } from "./arrangement.js";
import { NodeCards } from "./cards.js";
import { drawScale, verdictColour } from "./colours.js";
import { count, element, find, link, say } from "./elements.js";
import { NodeMap } from "./map.js";
import { BY_PODS } from "./occupants.js";
import { NodeTable } from "./table.js";

// Fewer nodes than this are shown as cards.
const MANY = 60;
// Where the order follows use, nodes move at most this often, in milliseconds.
const PATIENCE = 3_000;
const ZONE = "topology.kubernetes.io/zone";

export class NodesPart {
  constructor(state, view, open) {
    Object.assign(this, { state, view });
    this.arrangement = new Arrangement(state, view, () => this.rearrange());
    this.labels = this.arrangement.labels;
    // What covers the use of nodes: who takes the pod that is open, else who has pods of an owner.
    this.layers = { pod: null, of: null };
    this.arranged = 0;
    const told = { open: (row) => open(state.name(row)), tell: (row) => this.#tell(row) };
    this.map = new NodeMap(find("map"), this.arrangement, told);
    this.cards = new NodeCards(find("cards"), this.arrangement, told);
    this.table = new NodeTable(this.arrangement, open);
    this.#control("resource", () => this.rearrange());
    this.#control("sort", () => this.rearrange());
    this.#control("filter", () => this.rearrange());
    this.#control("by", () => this.rearrange());
    find("by").addEventListener("focus", () => this.#listLabels());
    new ResizeObserver(() => this.redraw()).observe(find("map-frame"));
    addEventListener("resize", () => this.redraw());
    this.#showBy([]);
    this.redraw();
  }

  // The middle of a row's cell or card in the window.
  middle(row) {
    return this.#shown.middle(row);
  }

  changed({ rows, members }, message) {
    if (message.resources) this.#showResources();
    if (members) this.labels.changed();
    if (members && !this.labels.keys.length && this.state.names.size) this.#listLabels();
    const moves = this.view.get("sort") !== "name" && performance.now() - this.arranged > PATIENCE;
    if (members || moves) this.rearrange();
    else this.#shown.changed(rows);
  }

  rearrange() {
    this.arranged = performance.now();
    this.arrangement.arrange();
    const { order } = this.arrangement, known = this.state.names.size;
    const few = order.length < MANY;
    find("map").hidden = few;
    find("cards").hidden = !few;
    find("nodes").dataset.few = few;
    this.#empty(order.length ? "" : this.#whyEmpty(known));
    say(find("nodes-count"), order.length === known ? count(known, "node") : `${order.length} of ${count(known, "node")}`);
    this.#shown.redraw();
    this.table.draw();
    say(find("group-says"), this.arrangement.occupants.explain(order));
    this.#legend();
  }

  redraw() {
    drawScale(find("scale"));
    this.#shown.redraw();
    this.#legend();
  }

  // Shows an overlay from now on; null shows what is below it.
  cover(layer, overlay) {
    this.layers[layer] = overlay;
    this.map.overlay = this.cards.overlay = this.overlay;
    this.redraw();
  }

  get overlay() {
    return this.layers.pod ?? this.layers.of;
  }

  // Names of nodes that stand out; null for none.
  brighten(names) {
    if (!this.overlay) return;
    this.overlay.bright = names && new Set(names);
    this.#shown.redraw();
  }

  get #shown() {
    return find("map").hidden ? this.cards : this.map;
  }

  #control(name, then) {
    const place = find(name);
    place.value = this.view.get(name);
    place.addEventListener(place.tagName === "INPUT" ? "input" : "change", () => this.view.set({ [name]: place.value }));
    this.view.listen((changed) => {
      if (!changed.has(name)) return;
      if (place.value !== this.view.get(name)) place.value = this.view.get(name);
      then();
    });
  }

  #tell(row) {
    const name = this.state.name(row), verdict = this.overlay?.describe(name);
    say(find("map-now"), verdict ? `${name}: ${verdict}` : this.arrangement.describe(row));
  }

  #showResources() {
    const place = find("resource");
    place.replaceChildren(...this.state.resources.map((text) => element("option", { text })));
    place.value = this.arrangement.resource;
  }

  async #listLabels() {
    this.#showBy(await this.labels.list());
  }

  // A label that was asked for by a link is there though nothing is known of labels yet.
  #showBy(keys) {
    const place = find("by"), now = this.view.get("by"), known = keys.map(({ key }) => key);
    const isLabel = now && BY_PODS.every(({ key }) => key !== now);
    const all = [...new Set([...known.filter((key) => key === ZONE), ...(isLabel ? [now] : []), ...known])];
    place.replaceChildren(
      element("option", { value: "", text: "nothing" }),
      element("optgroup", { label: "its pods'" }, ...BY_PODS.map(({ key, by }) => element("option", { value: key, text: by }))),
      ...(all.length ? [element("optgroup", { label: "a label" }, ...all.map((key) => element("option", { value: key, text: key })))] : []),
    );
    place.value = now;
  }

  #whyEmpty(known) {
    if (!this.arrangement.isReady) return "Looking …";
    if (!this.state.figures) return "Waiting for the scheduler …";
    if (known) return "No node matches the filter.";
    if (this.state.figures.nodes) return "Looking …";
    return "There are no nodes yet. They appear here as soon as the scheduler sees them.";
  }

  #empty(text) {
    const place = find("nodes-empty");
    place.hidden = !text;
    say(place, text);
  }

  #legend() {
    const place = find("verdicts"), { overlay } = this;
    find("scale-legend").hidden = Boolean(overlay);
    place.hidden = !overlay;
    if (!overlay) return;
    const items = overlay.categories.filter((each) => each.count !== 0).map(({ name, why, count: nodes, at, isAlone = true }) => {
      const mark = element("i", { class: at === -1 ? "swatch" : "swatch small" });
      mark.style.background = verdictColour(at);
      return element("li", { title: why }, mark, element("span", { text: [isAlone ? name : `${name}: ${why}`, nodes ?? ""].join(" ").trim() }));
    });
    const clear = overlay === this.layers.of ? [link("Show use again", () => this.view.set({ of: "" }))] : [];
    place.replaceChildren(element("span", { text: `Colours: ${overlay.title}` }), element("ul", {}, ...items), ...clear);
  }
}

