// The panel beside the page: a node with its pods, or what is to be said about a pod.

import { amount, element, find, link } from "./elements.js";
import { read } from "./stream.js";

// Lists longer than this are cut.
const MOST = 60;

export class Detail {
  constructor() {
    this.panel = find("detail");
    this.title = find("detail-title");
    this.body = find("detail-body");
    this.before = null;
    this.serial = 0;
    find("detail-close").addEventListener("click", () => this.close());
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  close() {
    this.serial++;
    this.panel.hidden = true;
    this.before?.focus();
    this.before = null;
  }

  node(name) {
    return this.#show(`Node ${name}`, `api/nodes/${encodeURIComponent(name)}`, (told) => this.#aboutNode(told));
  }

  pod(key) {
    const [namespace, name] = key.split("/");
    const path = `api/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    return this.#show(`Pod ${key}`, path, (told) => this.#aboutPod(told));
  }

  async #show(title, path, describe) {
    const serial = ++this.serial;
    if (!this.isOpen) this.before = document.activeElement;
    this.title.textContent = title;
    this.body.replaceChildren(element("p", { text: "Looking …", class: "hint" }));
    this.panel.hidden = false;
    this.title.focus();
    let parts;
    try {
      const told = await read(path);
      parts = told ? describe(told) : [element("p", { text: "It is not there any more." })];
    } catch (error) {
      parts = [element("p", { text: `It cannot be read: ${error.message}` })];
    }
    if (serial === this.serial) this.body.replaceChildren(...parts);
  }

  #aboutNode(told) {
    const parts = [];
    if (told.unschedulable) parts.push(element("p", { text: "It is cordoned: no pod is placed here." }));
    if (told.taints.length) parts.push(element("p", { text: `Taints: ${told.taints.join(", ")}` }));
    const uses = told.resources.map(({ name, requested, allocatable }) => {
      const share = allocatable ? Math.round((100 * requested) / allocatable) : 0;
      const meter = element("meter", { min: 0, max: allocatable || 1, value: requested, "aria-label": `${name} ${share}%` });
      return element("tr", {}, element("td", { text: name }), element("td", { text: `${amount(name, requested)} / ${amount(name, allocatable)}` }), element("td", {}, meter), element("td", { text: `${share}%` }));
    });
    const pods = told.pods.map((pod) => {
      const key = `${pod.namespace}/${pod.name}`;
      const asks = Object.entries(pod.requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
      return element("tr", {}, element("td", {}, link(key, () => this.pod(key))), element("td", { text: asks }));
    });
    parts.push(element("h3", { text: "Use" }), element("table", {}, ...uses));
    if (told.devices.length) parts.push(element("h3", { text: devicesTitle(told.devices) }), element("table", { id: "devices" }, ...told.devices.slice(0, MOST).map((device) => this.#aboutDevice(device))));
    parts.push(element("h3", { text: `Pods (${told.podCount})` }), element("table", {}, ...pods));
    parts.push(element("h3", { text: "Labels" }), value(told.labels));
    return parts;
  }

  #aboutDevice({ driver, pool, name, about, state, taints, claims, pods }) {
    const users = pods.map((key) => link(key, () => this.pod(key)));
    const held = element("td", { text: state === "free" ? "free" : `${state}${claims.length ? ` by ${claims.join(", ")}` : ""} ` }, ...users);
    const remarks = [about, ...taints.map((taint) => `taint ${taint}`)].filter(Boolean).join("; ");
    return element("tr", { title: `${driver}/${pool}/${name}` }, element("td", { text: name }), held, element("td", { text: remarks }));
  }

  #aboutPod({ pod, message, runningOn, chosen, ...rest }) {
    const parts = [];
    if (message) parts.push(element("p", { text: message, class: "message" }));
    for (const [text, node] of [["Runs on ", runningOn], ["Would go to ", chosen]]) {
      if (node) parts.push(element("p", { text }, link(node, () => this.node(node))));
    }
    return [...parts, ...sections(rest)];
  }
}

const devicesTitle = (devices) => `Devices (${devices.filter(({ state }) => state === "free").length} of ${devices.length} free)`;

// "leftOut" becomes "Left out".
const words = (name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/^./, (letter) => letter.toUpperCase());

const isEmpty = (told) => told === null || told === "" || (typeof told === "object" && !Object.keys(told).length);
const isPlain = (told) => typeof told !== "object";

// Plain values first, as a list of terms; then what is larger, each under a heading of its own.
function sections(told) {
  const filled = Object.entries(told).filter(([, each]) => !isEmpty(each));
  const plain = filled.filter(([, each]) => isPlain(each)), large = filled.filter(([, each]) => !isPlain(each));
  return [terms(plain), ...large.flatMap(([name, each]) => [element("h3", { text: words(name) }), value(each)])];
}

function terms(entries) {
  const rows = entries.flatMap(([name, each]) => [element("dt", { text: words(name) }), element("dd", {}, value(each))]);
  return element("dl", {}, ...rows);
}

function value(told) {
  if (isPlain(told)) return element("span", { text: String(told) });
  if (!Array.isArray(told)) {
    const entries = Object.entries(told).filter(([, each]) => !isEmpty(each));
    const rows = entries.flatMap(([name, each]) => [element("dt", { text: /[./-]/.test(name) ? name : words(name) }), element("dd", {}, value(each))]);
    return element("dl", {}, ...rows);
  }
  if (told.every(isPlain)) return element("span", { text: cut(told).join(", ") });
  return element("ul", {}, ...cut(told).map((each) => (isPlain(each) ? element("li", { text: each }) : element("li", {}, value(each)))));
}

const cut = (list) => (list.length > MOST ? [...list.slice(0, MOST), `and ${list.length - MOST} more`] : list);
