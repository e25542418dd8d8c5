// The gang of a pod in the panel: how much room it needs, where that is, and what would help.

import { count, element } from "./elements.js";

// The roomiest domains come first; further ones are only counted.
const DOMAINS = 5;

export function aboutGang({ group, minCount, waiting, running, topologyKey, message, arithmetic, room }) {
  const has = `${running} of at least ${minCount} have a node, ${waiting} wait`;
  const parts = [element("h3", { text: `The gang ${group}` }), element("p", { text: `${has}.` })];
  if (arithmetic) parts.push(element("p", { class: "arithmetic", text: arithmetic }));
  else if (message) parts.push(element("p", { class: "message", text: message }));
  if (room && room.domains.length > 1) parts.push(domains(room, topologyKey));
  return parts;
}

function domains({ domains: all, needed }, key) {
  const heads = [key, "Nodes", "Room", "Short"].map((text) => element("th", { text, scope: "col" }));
  const rows = all.slice(0, DOMAINS).map(({ name, nodes, room }) => element(
    "tr", {},
    element("th", { scope: "row", text: name }),
    element("td", { text: nodes, "data-label": "Nodes" }),
    element("td", { text: room, "data-label": "Room" }),
    element("td", { text: Math.max(0, needed - room) || "–", "data-label": "Short" }),
  ));
  const table = element("table", { class: "stacked" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  const left = all.length - rows.length;
  return element("div", {}, table, ...(left > 0 ? [element("p", { class: "hint", text: `and ${count(left, "more domain")}` })] : []));
}
