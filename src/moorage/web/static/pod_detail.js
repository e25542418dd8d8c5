// A pod in the panel: the answer first, then what would help, who rejects it, scores, and the rest.

import { verdictColour } from "./colours.js";
import { allRejections, reasonsOf } from "./overlay.js";
import { bar, breakable, count, countdown, element, folded, link, requests } from "./elements.js";

// Suggestions that are shown at once; those that help most come first.
const FIRST = 5;
// Names that are listed before they are only counted.
const NAMES = 3;
// Lists of the folded rest longer than this are cut.
const MOST = 60;

const TONES = { fits: "good", running: "good", preempting: "warn", pending: "bad", gated: "warn" };

export function aboutPod(about, follow, overlay) {
  const why = about.explanation, state = about.alone ? "gated" : why?.state ?? about.state;
  const parts = [element("p", { class: `headline ${TONES[state] ?? ""}`, text: sentence(about) })];
  if (about.gang?.message && !about.runningOn) parts.push(element("p", { class: "message", text: about.gang.message }));
  if (about.alone) parts.push(element("p", { text: `Without its gang: ${about.alone}` }));
  const chosen = why?.equallyGood.includes(about.runningOn) ? "" : why?.chosen;
  if (about.runningOn || (chosen && !about.alone)) parts.push(places(about.runningOn, chosen, follow));
  parts.push(...inQueue(why?.queue, follow));
  const message = why?.message || about.message;
  if (message && state !== "fits") parts.push(element("p", { class: "message", text: message }));
  if (why?.preemption) parts.push(preemption(why.preemption, follow));
  if (why?.suggestions.length) parts.push(...remedies(why, follow));
  if (why && overlay) parts.push(...rejections(why, follow));
  if (why?.scores.length) parts.push(...scores(why.scores, follow));
  parts.push(...facts(about));
  if (why) parts.push(folded("Everything, as in moorage explain -o json", tree(why)));
  return parts;
}

// The answer, without the name that is the title of the panel.
function sentence({ pod, headline, message, state }) {
  const text = headline || message || state, start = `pod ${pod} `;
  return text.startsWith(start) ? text[start.length].toUpperCase() + text.slice(start.length + 1) : text;
}

// What one node says to the pod.
export function answerOfNode({ node, feasible, refusals, score, better }) {
  if (feasible) {
    const than = better ? `${count(better, "node")} score better` : "none scores better";
    return [element("p", { text: `Node ${node} takes it${score ? `, with ${score.total} points: ${than}` : ""}.` })];
  }
  return [
    element("p", { text: `Node ${node} does not take it:` }),
    element("ul", {}, ...refusals.map(({ plugin, reasons }) => element("li", { text: `${plugin}: ${reasons.join(", ")}` }))),
  ];
}

function places(runningOn, chosen, follow) {
  const part = element("p");
  for (const [text, node] of [["Runs on ", runningOn], ["Would go to ", chosen === runningOn ? "" : chosen]]) {
    if (node) part.append(text, link(node, () => follow.node(node)), " ");
  }
  return part;
}

function inQueue(queue, follow) {
  if (!queue) return [];
  const after = count(queue.attempts, "attempt");
  if (queue.assumedOn) {
    const part = element("p", { text: "On its way to " }, link(queue.assumedOn, () => follow.node(queue.assumedOn)), `, after ${after}`);
    const permits = queue.permits.map(({ plugin, seconds }) => element("p", {}, `${plugin} has `, countdown(seconds), " to permit it"));
    return [part, ...permits];
  }
  const until = queue.backoffSeconds ? [", for another ", countdown(queue.backoffSeconds)] : [];
  const parts = [element("p", { class: "hint" }, `In the queue: ${queue.place}`, ...until, `, after ${after}`)];
  if (queue.nominatedNode) parts.push(element("p", { text: "Others are evicted for it on " }, link(queue.nominatedNode, () => follow.node(queue.nominatedNode))));
  return parts;
}

function preemption({ node, victims }, follow) {
  const pods = victims.slice(0, NAMES).map(({ pod }) => pod), left = victims.length - pods.length;
  return element("p", { text: "It would fit " }, link(node, () => follow.node(node)), ` once evicted: ${pods.join(", ")}${left ? ` and ${left} more` : ""}`);
}

function remedies({ suggestions, state }, follow) {
  const cards = suggestions.map((each) => remedy(each, follow));
  const parts = [
    element("h3", { text: state === "fits" ? "What would let it fit elsewhere" : "What would help" }),
    element("div", { class: "remedies" }, ...cards.slice(0, FIRST)),
  ];
  if (cards.length > FIRST) parts.push(folded(`${cards.length - FIRST} more`, element("div", { class: "remedies" }, ...cards.slice(FIRST))));
  return parts;
}

function remedy({ problem, remedy: change, effect, count: nodes, nodes: names, blockers }, follow) {
  const title = change ? `if ${change}` : problem;
  const helps = { none: "no change is known", evicts: `${count(nodes, "node")}, evicting others`, fits: count(nodes, "node") }[effect];
  const lines = [element("b", { class: "gain", text: helps }), element("span", { class: "change", text: title })];
  if (change) lines.push(element("span", { class: "hint", text: `because ${problem}` }));
  if (blockers.length) lines.push(element("span", { class: "hint" }, "in the way: ", ...named(blockers.map(({ pod }) => pod))));
  if (names.length) lines.push(element("span", { class: "hint" }, ...named(names)));
  return lit(element("button", { type: "button", class: `remedy ${effect}`, "data-key": `${title} ${names.length > 0}` }, ...lines), names, follow);
}

function rejections(why, follow) {
  const all = allRejections(why);
  const lines = all.map((each, at) => {
    const fill = bar(each.count / Math.max(1, why.nodeCount), verdictColour(at));
    const text = element("span", {}, element("b", { text: each.plugin }), ` ${reasonsOf(each, all)}`);
    const such = each.nodes.length ? [element("span", { class: "hint" }, "such as ", ...named(each.nodes, 2))] : [];
    return lit(element("button", { type: "button", class: "rejection", "data-key": `${each.plugin} ${each.reasons} ${each.code} ${each.nodes.length > 0}` }, text, element("b", { class: "number", text: String(each.count) }), fill, ...such), each.nodes, follow);
  });
  const takes = why.feasibleCount;
  if (takes) lines.unshift(element("div", { class: "rejection" }, element("span", {}, element("b", { text: "takes it" })), element("b", { class: "number", text: String(takes) }), bar(takes / Math.max(1, why.nodeCount), verdictColour(-1))));
  return [element("h3", { text: `What ${count(why.nodeCount, "node")} say` }), element("div", { class: "rejections" }, ...lines)];
}

// While it is pointed at, or after it was pressed, only its nodes stand out.
function lit(made, names, follow) {
  if (!names.length) return made;
  const pressed = () => made.closest("#detail-body")?.querySelector('[aria-pressed="true"]');
  const rest = () => follow.brighten(pressed()?.nodes ?? null);
  // They change when the answer is renewed.
  made.nodes = names;
  made.setAttribute("aria-pressed", "false");
  made.addEventListener("pointerenter", () => follow.brighten(made.nodes));
  made.addEventListener("pointerleave", rest);
  made.addEventListener("click", () => {
    const on = made.getAttribute("aria-pressed") !== "true";
    pressed()?.setAttribute("aria-pressed", "false");
    made.setAttribute("aria-pressed", String(on));
    rest();
  });
  return made;
}

function scores(all, follow) {
  // A plugin that gives every node 0 says nothing.
  const plugins = [...new Set(all.flatMap(({ byPlugin }) => Object.keys(byPlugin)))]
    .filter((plugin) => all.some(({ byPlugin }) => byPlugin[plugin]));
  const heads = ["Node", "Total", ...plugins].map((text) => element("th", { text, scope: "col" }));
  const rows = all.map(({ node, total, byPlugin }) => element(
    "tr", {},
    element("th", { scope: "row" }, link(node, () => follow.node(node))),
    element("td", { "data-label": "Total" }, element("b", { text: total })),
    ...plugins.map((plugin) => element("td", { text: byPlugin[plugin] ?? 0, "data-label": plugin })),
  ));
  return [
    element("h3", { text: "Best nodes" }),
    element("table", { class: "stacked" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)),
  ];
}

function facts(about) {
  const { owner, gang, priority, requests: asked } = about, rows = [];
  const put = (name, text) => rows.push(element("dt", { text: name }), element("dd", { text }));
  if (owner && !owner.startsWith("pod ")) put("owner", owner);
  if (gang) put(gang.isGang ? "gang" : "group", `${gang.name}: ${gang.placed} placed, ${gang.waiting} waiting${gang.isGang ? `, needs ${gang.minCount}` : ""}`);
  if (asked && Object.keys(asked).length) put("requests", requests(asked));
  if (priority !== undefined) put("priority", String(priority));
  return rows.length ? [element("h3", { text: "The pod" }), element("dl", {}, ...rows)] : [];
}

// The first of some names, and how many more there are.
function named(names, most = NAMES) {
  const shown = names.slice(0, most).flatMap((name, at) => [at ? ", " : "", ...breakable(name)]);
  return names.length > most ? [...shown, ` and ${names.length - most} more`] : shown;
}

const isEmpty = (value) => value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);

// Any value as it is: names are shown as they are written.
export function tree(value) {
  if (typeof value !== "object" || value === null) return element("span", { text: String(value) });
  if (Array.isArray(value)) {
    const cut = value.length > MOST ? [...value.slice(0, MOST), `and ${value.length - MOST} more`] : value;
    if (cut.every((each) => typeof each !== "object")) return element("span", { text: cut.join(", ") });
    return element("ul", {}, ...cut.map((each) => element("li", {}, tree(each))));
  }
  const filled = Object.entries(value).filter(([, each]) => !isEmpty(each));
  return element("dl", {}, ...filled.flatMap(([name, each]) => [element("dt", { text: name }), element("dd", {}, tree(each))]));
}
