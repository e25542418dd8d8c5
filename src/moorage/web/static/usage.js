// Who uses what: namespaces, owners, gangs, tables of plugins, devices, batching. What is open is asked for, every few seconds.

import { amount, bar, button, count, element, find, link, number, percent } from "./elements.js";
import { presence } from "./overlay.js";
import { read } from "./stream.js";

const EVERY = 5_000;
const TABS = {
  namespace: { path: "api/usage?by=namespace", title: "Namespaces" },
  owner: { path: "api/usage?by=owner", title: "Owners" },
  gangs: { path: "api/gangs", title: "Gangs" },
  devices: { path: "api/devices", title: "Devices and extended resources" },
  batching: { path: "api/batching", title: "Batching" },
};

export class Usage {
  constructor(state, view, { openPod, cover }) {
    Object.assign(this, { state, view, openPod, cover });
    this.body = find("usage-body");
    this.tabs = find("usage-tabs");
    this.serial = 0;
    this.sort = { by: "pods", up: false };
    this.tabs.append(...Object.keys(TABS).map((name) => this.#tab(name)));
    this.tabs.addEventListener("keydown", (event) => this.#key(event));
    view.listen((changed) => {
      if (changed.has("tab")) this.refresh(true);
      if (changed.has("of")) this.#showOf();
    });
    // Nobody is asked while nobody sees the answer.
    new IntersectionObserver((entries) => {
      this.visible = entries.some((entry) => entry.isIntersecting);
      if (this.visible) this.refresh();
    }).observe(find("usage"));
    setInterval(() => { if (this.visible && !document.hidden) this.refresh(); }, EVERY);
    this.#select();
  }

  // Somebody was let in: what the link asks for can be read now.
  async start() {
    await this.#addSections();
    this.refresh(true);
    if (this.view.get("of")) this.#showOf();
  }

  #tab(name) {
    return button(TABS[name].title, () => this.view.set({ tab: name }), { role: "tab", id: `tab-${name}`, "aria-controls": "usage-body" });
  }

  // Tables that plugins show.
  async #addSections() {
    try {
      for (const { name, title } of await read("api/sections") ?? []) {
        if (TABS[name]) continue;
        TABS[name] = { path: `api/sections/${encodeURIComponent(name)}`, title, draw: section };
        this.tabs.append(this.#tab(name));
      }
    } catch {
      // The other tabs are there anyway.
    }
  }

  async refresh(isNew = false) {
    this.#select();
    const serial = ++this.serial, tab = TABS[this.view.get("tab")] ?? TABS.namespace;
    if (isNew) this.body.replaceChildren(element("p", { class: "hint", text: "Looking …" }));
    let told;
    try {
      told = await read(tab.path);
    } catch {
      return;
    }
    if (serial === this.serial && told && !this.body.matches(":focus-within")) this.#draw(told);
  }

  #select() {
    for (const tab of this.tabs.children) {
      const on = tab.id === `tab-${this.view.get("tab")}`;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      if (on) this.body.setAttribute("aria-labelledby", tab.id);
    }
  }

  #draw(told) {
    this.told = told;
    const tab = this.view.get("tab");
    const draw = { gangs, devices, batching }[tab] ?? TABS[tab]?.draw;
    this.body.replaceChildren(...(draw?.(told, this.openPod) ?? this.#usage(told)));
  }

  #usage({ count: all, items }) {
    if (!items.length) return [empty("No pods yet. What they ask for is added up here.")];
    const { resources, totals } = this.state, asked = new Set(items.flatMap((each) => Object.keys(each.requests)));
    const shown = resources.map((name, at) => [name, totals[at]?.[1] ?? 0]).filter(([name]) => name !== "pods" && asked.has(name));
    const heads = [["name", this.view.get("tab")], ["pods", "pods"], ["waiting", "waiting"], ...shown.map(([name]) => [name, name])];
    const head = heads.map(([by, text]) => element("th", { scope: "col", "aria-sort": this.sort.by === by ? (this.sort.up ? "ascending" : "descending") : "none" }, button(text, () => this.#sortBy(by), { class: "link" })));
    const rows = items.toSorted(this.#comparing()).map((each) => element(
      "tr", {},
      element("th", { scope: "row" }, button(each.name, () => this.view.set({ of: `${this.view.get("tab")} ${each.name}`, pod: "", node: "" }), { class: "link", title: "Show its nodes on the map" })),
      element("td", { text: number(each.pods), "data-label": "pods" }),
      element("td", { text: number(each.waiting), "data-label": "waiting" }),
      ...shown.map(([name, whole]) => share(name, each.requests[name] ?? 0, whole)),
    ));
    const more = all > items.length ? [element("p", { class: "hint", text: `The largest ${items.length} of ${number(all)}.` })] : [];
    return [table(head, rows), ...more];
  }

  #comparing() {
    const { by, up } = this.sort, sign = up ? 1 : -1;
    if (by === "name") return (one, other) => sign * one.name.localeCompare(other.name);
    const value = (each) => (by === "pods" || by === "waiting" ? each[by] : each.requests[by] ?? 0);
    return (one, other) => sign * (value(one) - value(other));
  }

  #sortBy(by) {
    this.sort = { by, up: this.sort.by === by ? !this.sort.up : by === "name" };
    this.#draw(this.told);
  }

  // The nodes that have pods of a namespace or an owner, on the map.
  async #showOf() {
    const of = this.view.get("of"), at = of.indexOf(" ");
    if (!of) return this.cover(null);
    const [by, name] = [of.slice(0, at), of.slice(at + 1)];
    try {
      const counts = await read(`api/usage?by=${encodeURIComponent(by)}&name=${encodeURIComponent(name)}`);
      if (counts && of === this.view.get("of")) this.cover(presence(`nodes with pods of ${by} ${name}`, counts));
    } catch {
      this.cover(null);
    }
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS), next = names[(names.indexOf(this.view.get("tab")) + step + names.length) % names.length];
    event.preventDefault();
    this.view.set({ tab: next });
    find(`tab-${next}`).focus();
  }
}

const empty = (text) => element("p", { class: "empty", text });

const table = (head, rows) =>
  element("table", { class: "stacked" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));

const heads = (...texts) => texts.map((text) => element("th", { text, scope: "col" }));

function share(name, value, whole) {
  const part = whole ? value / whole : 0;
  return element("td", { "data-label": name }, element("span", { class: "cell" }, element("span", { text: `${amount(name, value)} · ${percent(part)}` }), bar(part)));
}

function gangs({ items }, openPod) {
  if (!items.length) return [empty("No pod groups. Gangs appear here with what they need and what they have.")];
  const rows = items.map((gang) => element(
    "tr", {},
    element("th", { scope: "row", text: gang.name }),
    element("td", { text: gang.isGang ? `at least ${number(gang.minCount)}` : "no gang", "data-label": "needs" }),
    element("td", { "data-label": "placed" }, element("span", { class: "cell" }, element("span", { text: `${number(gang.placed)} of ${number(gang.placed + gang.waiting)}` }), bar(gang.placed / Math.max(1, gang.placed + gang.waiting)))),
    element("td", { text: gang.topologyKey || "–", "data-label": "together in" }),
    element("td", { "data-label": "why it waits" }, ...(gang.pod ? [element("span", { class: "cell" }, element("span", { class: "hint", text: gang.reason || "its pods wait; the panel says what each of them alone would find" }), link(gang.pod, () => openPod(gang.pod)))] : ["–"])),
  ));
  return [table(heads("group", "needs", "placed", "together in", "why it waits"), rows)];
}

function section({ heads: names, empty: says, items, isWhole }) {
  if (!items.length) return [empty(says)];
  const text = (cell) => {
    if (typeof cell === "number") return number(cell);
    return typeof cell === "string" ? cell : Object.entries(cell).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
  };
  const rows = items.map(([name, ...cells]) => element(
    "tr", {},
    element("th", { scope: "row", text: name }),
    ...cells.map((cell, at) => element("td", { text: text(cell), "data-label": names[at + 1] })),
  ));
  const more = isWhole ? [] : [element("p", { class: "hint", text: `The first ${items.length} are listed.` })];
  return [table(heads(...names), rows), ...more];
}

function devices({ drivers, claims, allocated, extended }) {
  const parts = [];
  if (drivers.length) {
    const rows = drivers.map((each) => element(
      "tr", {},
      element("th", { scope: "row", text: each.driver }),
      element("td", { text: number(each.pools), "data-label": "pools" }),
      element("td", { text: number(each.devices), "data-label": "devices" }),
      element("td", { "data-label": "in use" }, element("span", { class: "cell" }, element("span", { text: `${number(each.taken)} taken${each.shared ? `, ${number(each.shared)} shared` : ""}` }), bar((each.taken + each.shared) / Math.max(1, each.devices)))),
    ));
    parts.push(table(heads("driver", "pools", "devices", "in use"), rows));
  }
  if (claims) parts.push(element("p", { text: `${count(claims, "resource claim")}, ${number(allocated)} with devices.` }));
  if (extended.length) {
    const rows = extended.map(({ type, nodes, figures }) => element(
      "tr", {},
      element("th", { scope: "row", text: type }),
      element("td", { text: number(nodes), "data-label": "nodes" }),
      element("td", { text: Object.entries(figures).map(([name, value]) => `${name} ${number(value)}`).join(", "), "data-label": "in all" }),
    ));
    parts.push(table(heads("extended resource", "nodes", "in all"), rows));
  }
  return parts.length ? parts : [empty("No devices by claim, and no plugin counts resources of its own. Both appear here.")];
}

// How many decisions were about pods like one before, how many were made by what was known of these,
// and which plugins keep the others apart.
function batching({ items }) {
  const known = items.filter(({ decisions }) => decisions);
  if (!known.length) return [empty("Nothing was decided yet. How many pods could share answers appears here, and who keeps the others apart.")];
  const cell = (part, whole, label) => element("td", { "data-label": label }, element("span", { class: "cell" }, element("span", { text: `${number(part)} · ${percent(part / whole)}` }), bar(part / whole)));
  const rows = known.map((each) => element(
    "tr", {},
    element("th", { scope: "row", text: each.profile }),
    element("td", { text: number(each.decisions), "data-label": "decisions" }),
    cell(each.alike, each.decisions, "like one before"),
    cell(each.byBatch, each.decisions, "by batch"),
    cell(each.byClass, each.decisions, "by class"),
  ));
  const plugins = known.flatMap(({ apart, decisions }) => apart.map((each) => element(
    "tr", {},
    element("th", { scope: "row", text: each.plugin }),
    element("td", { text: each.why, "data-label": "why" }),
    cell(each.pods, decisions, "decisions"),
  )));
  const who = plugins.length ? table(heads("plugin", "why", "decisions"), plugins) : element("p", { class: "hint", text: "No plugin keeps pods apart that could share answers." });
  return [table(heads("profile", "decisions", "like one before", "by batch", "by class"), rows), who];
}
