// The panel beside the page: a node with its pods, or what is to be said about a pod. It is renewed
// when that may have changed.

import { clock, element, find, link, say, tick } from "./elements.js";
import { aboutGang } from "./gang_detail.js";
import { aboutNode } from "./node_detail.js";
import { aboutPod, answerOfNode } from "./pod_detail.js";
import { verdicts } from "./overlay.js";
import { renew } from "./renewal.js";
import { read, readNewer } from "./stream.js";

// What the page is told of shows at once that a pod has moved. What nodes say to it changes with
// much else, so it is asked for from time to time, in milliseconds; the server knows by a tag
// whether there is something to be worked out. An answer that takes long is asked for less often.
const SOON = 1_000, EVERY = 3_000, ANYWAY = 30_000, RARELY = 5;

const podPath = (root, key) => `api/${root}/${key.split("/").map(encodeURIComponent).join("/")}`;

export class Detail {
  // `nodes` shows the verdicts of a pod that is open.
  constructor(view, nodes) {
    Object.assign(this, { view, nodes });
    this.panel = find("detail");
    this.title = find("detail-title");
    this.body = find("detail-body");
    this.before = null;
    this.serial = 0;
    this.shown = null;
    // What was told last, when and by which tag, and how long it took.
    this.told = { tag: null, at: 0, anyway: 0, took: 0 };
    this.isStale = this.isAsking = false;
    setInterval(() => this.#watch(), SOON);
    find("detail-close").addEventListener("click", () => this.close());
    find("detail-size").addEventListener("click", () => this.#grow(!this.panel.classList.contains("tall")));
    view.listen((changed) => {
      if (changed.has("pod") || changed.has("node")) this.#show();
    });
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  close() {
    this.view.set({ pod: "", node: "" }, { opens: true });
  }

  openPod(key) {
    this.view.set({ pod: key, node: "" }, { opens: true });
  }

  openNode(name) {
    this.view.set({ pod: "", node: name }, { opens: true });
  }

  // A node on the map: beside a pod that is open, what it says to that pod.
  choose(name) {
    this.view.set({ node: name }, { opens: true });
  }

  // A message came: is it about what is open?
  changed(message, { rows, members }) {
    if (!this.isOpen || this.isStale) return;
    const isMeant = this.view.get("pod") ? this.#isAboutPod(message) : members || rows === null || rows.some((row) => this.#isOpenNode(row));
    this.isStale = Boolean(message.reset) || isMeant;
  }

  #isAboutPod({ queue, arrivals }) {
    const pod = this.view.get("pod"), put = queue?.put?.find(([, key]) => key === pod);
    if (put) this.number = put[0];
    return Boolean(put) || Boolean(queue?.gone?.includes(this.number)) || Boolean(arrivals?.some(([key]) => key === pod));
  }

  #isOpenNode(row) {
    return this.nodes.state.name(row) === this.view.get("node");
  }

  // What the address says, at the beginning and whenever it changes.
  #show() {
    const pod = this.view.get("pod"), node = this.view.get("node");
    if (!pod && !node) return this.#hide();
    if (!this.isOpen) this.before = document.activeElement;
    this.told.tag = null;
    return this.#ask();
  }

  start() {
    this.#show();
  }

  // Asks again if it is time to.
  #watch() {
    if (!this.isOpen || document.hidden) return;
    this.body.querySelectorAll("[data-until]").forEach(tick);
    if (this.isAsking) return;
    const { at, anyway, took } = this.told, now = performance.now();
    if (now - at < RARELY * took) return;
    if (this.isStale || now - anyway > ANYWAY) this.told.tag = null;
    // All that can be seen of a node is told without asking.
    else if (!this.view.get("pod") || now - at < EVERY) return;
    this.#ask();
  }

  async #ask() {
    const pod = this.view.get("pod"), node = this.view.get("node"), began = performance.now();
    this.isAsking = true;
    this.isStale = false;
    const serial = await (pod ? this.#showPod(pod, node) : this.#showNode(node));
    if (serial !== this.serial) return;
    this.isAsking = false;
    this.told.at = performance.now();
    this.told.took = this.told.at - began;
  }

  async #showPod(key, node) {
    const isNew = this.shown !== `pod ${key}`, serial = ++this.serial;
    const found = await this.#load(`pod ${key}`, podPath("pods", key), serial);
    if (found === undefined) return serial;
    const { about } = found;
    if (about === null) {
      this.#cover(null);
      this.#fill(element("p", { text: "This pod is not there any more, or never was." }));
      return serial;
    }
    const overlay = verdicts(about.explanation);
    const follow = {
      node: (name) => this.openNode(name),
      brighten: (names) => this.nodes.brighten(names),
    };
    // What takes longer comes later, but does not go away while it is asked for anew.
    const parts = aboutPod(about, follow, overlay);
    if (isNew) {
      this.#cover(overlay, about.explanation);
      this.body.replaceChildren(...parts);
    }
    if (isNew && innerWidth < 1100) find("verdicts").parentElement.scrollIntoView({ block: "start" });
    if (about.gang?.isGang && !about.runningOn) parts.splice(1, 0, ...(await this.#askGang(about.gang.name)));
    if (node) parts.unshift(await this.#askNode(key, node));
    if (serial !== this.serial) return serial;
    this.#cover(overlay, about.explanation);
    this.#fill(...parts);
    this.nodes.brighten(this.body.querySelector('[aria-pressed]:hover, [aria-pressed="true"]')?.nodes ?? null);
    return serial;
  }

  // Colours the nodes by verdict, unless they have these colours.
  #cover(overlay, explanation) {
    const { rejections, leftOut, feasibleCount, nodeCount } = explanation ?? {};
    const said = overlay && JSON.stringify([this.shown, rejections, leftOut, feasibleCount, nodeCount]);
    if (said !== null && said === this.covered) return;
    this.covered = said;
    this.nodes.cover("pod", overlay);
  }

  // A gang that waits is explained by itself, because that takes longer.
  async #askGang(name) {
    let parts;
    try {
      const about = await read(podPath("podgroups", name));
      parts = about ? aboutGang(about) : [];
    } catch (error) {
      parts = [element("p", { class: "hint", text: `Its gang cannot be explained: ${error.message}` })];
    }
    return parts.length ? [element("section", { class: "gang", "aria-label": `The gang ${name}` }, ...parts)] : [];
  }

  async #askNode(key, node) {
    let parts;
    try {
      const about = await read(`${podPath("explain", key)}?node=${encodeURIComponent(node)}`);
      parts = about?.node ? answerOfNode(about.node) : [element("p", { text: `Node ${node} is not asked about this pod.` })];
    } catch (error) {
      parts = [element("p", { text: `It cannot be read: ${error.message}` })];
    }
    return element("section", { class: "answer", "aria-label": `What node ${node} says` }, ...parts, link(`Open node ${node}`, () => this.openNode(node)));
  }

  async #showNode(name) {
    const serial = ++this.serial;
    this.#cover(null);
    const found = await this.#load(`node ${name}`, `api/nodes/${encodeURIComponent(name)}`, serial);
    if (found === undefined) return serial;
    if (found.about === null) this.#fill(element("p", { text: "This node is not there any more, or never was." }));
    else this.#fill(...aboutNode(found.about, { pod: (key) => this.openPod(key) }));
    return serial;
  }

  // What the server says; undefined if it says the same as before, or is not wanted any more.
  async #load(title, path, serial) {
    const isNew = this.shown !== title, { tag } = this.told, says = find("detail-when");
    if (isNew) this.#begin(title);
    let found;
    try {
      found = await readNewer(path, tag);
    } catch (error) {
      if (serial !== this.serial) return undefined;
      this.isStale = true;
      // What was read before is better than nothing.
      if (isNew) this.#fill(element("p", { text: `It cannot be read: ${error.message}` }));
      else say(says, `${says.textContent.replace(/, .*/, "")}, ${error.message}`);
      return undefined;
    }
    if (serial !== this.serial) return undefined;
    say(says, `as of ${clock(Date.now() / 1000)}`);
    if (found === undefined) return undefined;
    this.told.tag = found.tag;
    if (!tag) this.told.anyway = performance.now();
    return found;
  }

  #begin(title) {
    this.shown = title;
    // By which the queue knows the pod.
    this.number = [...this.nodes.state.queue.values()].find(({ key }) => title === `pod ${key}`)?.number;
    this.title.textContent = title;
    this.body.replaceChildren(element("p", { text: "Looking …", class: "hint" }));
    this.panel.hidden = false;
    document.body.dataset.detail = "open";
    this.panel.scrollTop = 0;
    this.title.focus({ preventScroll: true });
  }

  #fill(...parts) {
    const focused = this.body.contains(document.activeElement);
    renew(this.body, parts);
    // What had the focus may be gone.
    if (focused && !this.body.contains(document.activeElement)) this.title.focus({ preventScroll: true });
  }

  #hide() {
    if (!this.isOpen) return;
    this.serial++;
    this.isAsking = false;
    this.shown = null;
    this.panel.hidden = true;
    this.#grow(false);
    delete document.body.dataset.detail;
    this.#cover(null);
    this.before?.focus({ preventScroll: true });
    this.before = null;
  }

  #grow(tall) {
    this.panel.classList.toggle("tall", tall);
    find("detail-size").textContent = tall ? "Smaller" : "Larger";
  }
}
