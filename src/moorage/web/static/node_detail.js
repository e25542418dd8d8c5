// A node in the panel: what is used of it, its devices, its pods and its labels.

import { amount, bar, element, folded, link, number, percent, requests } from "./elements.js";

// Lists longer than this are folded.
const MANY = 12;

export function aboutNode(about, follow) {
  const parts = [];
  if (about.unschedulable) parts.push(element("p", { class: "headline warn", text: "It is cordoned: no pod is placed here." }));
  if (about.taints.length) parts.push(element("h3", { text: "Taints" }), element("ul", { class: "tags" }, ...about.taints.map((text) => element("li", { text }))));
  parts.push(element("h3", { text: "Use" }), element("div", { class: "uses" }, ...about.resources.map(use)));
  for (const [kind, figures] of Object.entries(about.extended ?? {})) parts.push(element("h3", { text: kind }), figuresOf(figures));
  if (about.devices.length) parts.push(...devices(about.devices, follow));
  parts.push(...pods(about, follow));
  parts.push(folded(`Labels (${Object.keys(about.labels).length})`, labels(about.labels)));
  return parts;
}

function use({ name, requested, allocatable }) {
  const share = allocatable ? requested / allocatable : 0;
  return element(
    "div", { class: "use" },
    element("span", { text: name }),
    element("span", { class: "value", text: `${amount(name, requested)} / ${amount(name, allocatable)}` }),
    element("b", { class: "number", text: percent(share) }),
    bar(share),
  );
}

function figuresOf(figures) {
  const rows = Object.entries(figures).flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: number(value) })]);
  return element("dl", {}, ...rows);
}

function devices(all, follow) {
  const free = all.filter(({ state }) => state === "free").length;
  const rows = all.map(({ driver, pool, name, about, state, taints, claims, pods: users }) => element(
    "li", {},
    element("b", { text: name }),
    element("span", { class: `state ${state === "free" ? "good" : ""}`, text: state === "free" ? "free" : `${state}${claims.length ? ` by ${claims.join(", ")}` : ""}` }),
    ...users.map((key) => link(key, () => follow.pod(key))),
    element("span", { class: "hint", text: [`${driver}/${pool}`, about, ...taints.map((taint) => `taint ${taint}`)].filter(Boolean).join("; ") }),
  ));
  return [element("h3", { text: `Devices (${free} of ${all.length} free)` }), ...list("devices", rows, `${rows.length - MANY} more devices`)];
}

function pods({ pods: all, podCount }, follow) {
  const title = element("h3", { text: `Pods (${podCount})` });
  if (!all.length) return [title, element("p", { class: "hint", text: "No pod is on this node." })];
  const rows = all.map((pod) => {
    const key = `${pod.namespace}/${pod.name}`;
    return element("li", {}, link(key, () => follow.pod(key)), element("span", { class: "hint", text: requests(pod.requests) || "asks for nothing" }));
  });
  return [title, ...list("pods", rows, `${podCount - MANY} more pods`)];
}

function list(id, rows, more) {
  const made = [element("ul", { class: "lines", id }, ...rows.slice(0, MANY))];
  if (rows.length > MANY) made.push(folded(more, element("ul", { class: "lines" }, ...rows.slice(MANY))));
  return made;
}

function labels(all) {
  const rows = Object.entries(all).flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]);
  return element("dl", {}, ...rows);
}
