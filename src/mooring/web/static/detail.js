// The panel beside the page: a node with its pods, or what is to be said about a pod.

import { element, find, link } from "./elements.js";
import { aboutGang } from "./gang_detail.js";
import { aboutNode } from "./node_detail.js";
import { aboutPod, answerOfNode } from "./pod_detail.js";
import { verdicts } from "./overlay.js";
import { read } from "./stream.js";

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
    find("detail-close").addEventListener("click", () => this.close());
    find("detail-again").addEventListener("click", () => this.#show());
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

  // What the address says, at the beginning and whenever it changes.
  #show() {
    const pod = this.view.get("pod"), node = this.view.get("node");
    if (!pod && !node) return this.#hide();
    if (!this.isOpen) this.before = document.activeElement;
    return pod ? this.#showPod(pod, node) : this.#showNode(node);
  }

  start() {
    this.#show();
  }

  async #showPod(key, node) {
    const isNew = this.shown !== `pod ${key}`;
    const about = await this.#load(`pod ${key}`, podPath("pods", key));
    if (about === undefined) return;
    if (about === null) return this.#fill(element("p", { text: "This pod is not there any more, or never was." }));
    const overlay = verdicts(about.explanation);
    this.nodes.cover("pod", overlay);
    const follow = {
      node: (name) => this.openNode(name),
      brighten: (names) => this.nodes.brighten(names),
    };
    this.#fill(...aboutPod(about, follow, overlay));
    if (isNew && innerWidth < 1100) find("nodes").scrollIntoView({ block: "start" });
    if (about.gang?.isGang && !about.runningOn) await this.#askGang(about.gang.name);
    if (node) await this.#askNode(key, node);
  }

  // A gang that waits is explained by itself, because that takes longer.
  async #askGang(name) {
    const serial = this.serial;
    let parts;
    try {
      const about = await read(podPath("podgroups", name));
      parts = about ? aboutGang(about) : [];
    } catch (error) {
      parts = [element("p", { class: "hint", text: `Its gang cannot be explained: ${error.message}` })];
    }
    if (serial !== this.serial || !parts.length) return;
    this.body.querySelector(".headline")?.after(element("section", { class: "gang", "aria-label": `The gang ${name}` }, ...parts));
  }

  async #askNode(key, node) {
    const serial = this.serial;
    let parts;
    try {
      const about = await read(`${podPath("explain", key)}?node=${encodeURIComponent(node)}`);
      parts = about?.node ? answerOfNode(about.node) : [element("p", { text: `Node ${node} is not asked about this pod.` })];
    } catch (error) {
      parts = [element("p", { text: `It cannot be read: ${error.message}` })];
    }
    if (serial !== this.serial) return;
    const box = element("section", { class: "answer", "aria-label": `What node ${node} says` }, ...parts, link(`Open node ${node}`, () => this.openNode(node)));
    this.body.querySelector(".answer")?.remove();
    this.body.prepend(box);
  }

  async #showNode(name) {
    this.nodes.cover("pod", null);
    const about = await this.#load(`node ${name}`, `api/nodes/${encodeURIComponent(name)}`);
    if (about === undefined) return;
    if (about === null) return this.#fill(element("p", { text: "This node is not there any more, or never was." }));
    this.#fill(...aboutNode(about, { pod: (key) => this.openPod(key) }));
  }

  // What the server says; null if there is no such thing; undefined if it is not wanted any more.
  async #load(title, path) {
    const serial = ++this.serial, isNew = this.shown !== title;
    this.shown = title;
    this.title.textContent = title;
    if (isNew) this.body.replaceChildren(element("p", { text: "Looking …", class: "hint" }));
    this.panel.hidden = false;
    document.body.dataset.detail = "open";
    if (isNew) {
      this.panel.scrollTop = 0;
      this.title.focus({ preventScroll: true });
    }
    let about;
    try {
      about = await read(path);
    } catch (error) {
      if (serial === this.serial) this.#fill(element("p", { text: `It cannot be read: ${error.message}` }));
      return undefined;
    }
    return serial === this.serial ? about : undefined;
  }

  #fill(...parts) {
    this.body.replaceChildren(...parts);
  }

  #hide() {
    if (!this.isOpen) return;
    this.serial++;
    this.shown = null;
    this.panel.hidden = true;
    this.#grow(false);
    delete document.body.dataset.detail;
    this.nodes.cover("pod", null);
    this.before?.focus({ preventScroll: true });
    this.before = null;
  }

  #grow(tall) {
    this.panel.classList.toggle("tall", tall);
    find("detail-size").textContent = tall ? "Smaller" : "Larger";
  }
}
