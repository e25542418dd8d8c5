// The page: puts its parts together.

import { Charts } from "./charts.js";
import { drawScale, whenThemeChanges } from "./colours.js";
import { Detail } from "./detail.js";
import { element, find } from "./elements.js";
import { Flights } from "./flights.js";
import { NodeMap } from "./map.js";
import { timed } from "./pace.js";
import { QueueList } from "./queue.js";
import { Search } from "./search.js";
import { State } from "./state.js";
import { follow, remember } from "./stream.js";
import { NodeTable } from "./table.js";

const SAYS = { live: "Live", lost: "The server does not answer. Trying again.", denied: "Sign in to look." };

const state = new State();
const detail = new Detail();
const openNode = (name) => detail.node(name);
const openPod = (key) => detail.pod(key);
const map = new NodeMap(find("map"), state, {
  open: openNode,
  tell: (text) => { find("map-now").textContent = text; },
});
const queue = new QueueList(
  { list: find("queue-list"), space: find("queue-space"), count: find("queue-count") }, state, openPod,
);
const flights = new Flights(find("flights"), find("queue"), (row) => map.middle(row));
const charts = new Charts(find);
const table = new NodeTable(state, openNode);
const search = new Search({ openNode, openPod });

function tell(message) {
  timed("apply", () => {
    const changed = state.apply(message);
    if (message.resources) showResources();
    if (changed.members) table.draw();
    map.changed(changed.members ? null : changed.rows);
    if (changed.queue) queue.changed();
    flights.start(changed.arrivals.map(([, row]) => row));
    showFigures();
  });
}

function showResources() {
  const select = find("resource"), before = select.value;
  select.replaceChildren(...state.resources.map((text) => element("option", { text })));
  if (state.resources.includes(before)) select.value = before;
  map.select(Math.max(0, select.selectedIndex));
}

function showFigures() {
  const { figures } = state;
  if (!figures) return;
  const waiting = Object.values(figures.waiting).reduce((sum, each) => sum + each, 0);
  const shown = { nodes: figures.nodes, pods: figures.pods, waiting, flying: figures.inFlight };
  for (const [name, value] of Object.entries(shown)) {
    const text = value.toLocaleString("en"), place = find(`figure-${name}`);
    if (place.textContent !== text) place.textContent = text;
  }
  charts.draw(state.samples);
}

function showConnection(now) {
  const status = find("status");
  if (status.dataset.state === now) return;
  status.dataset.state = now;
  status.textContent = SAYS[now];
}

function askForToken(why) {
  const form = find("login"), token = find("token");
  find("login-why").textContent = why;
  find("page").hidden = true;
  form.hidden = false;
  token.focus();
  return new Promise((done) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      remember(token.value.trim());
      token.value = "";
      form.hidden = true;
      find("page").hidden = false;
      done();
    }, { once: true });
  });
}

function redraw() {
  drawScale(find("scale"));
  map.redraw();
  charts.draw(state.samples, { anyway: true });
}

find("resource").addEventListener("change", (event) => map.select(event.target.selectedIndex));
find("place").addEventListener("change", (event) => queue.show(event.target.value));
document.addEventListener("visibilitychange", () => { if (!document.hidden) redraw(); });
document.addEventListener("keydown", (event) => {
  const writes = /^(input|select|textarea)$/i.test(event.target.tagName);
  if (event.key === "Escape" && detail.isOpen) detail.close();
  else if (event.key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.input.focus();
  }
});
whenThemeChanges(redraw);
redraw();
follow({ tell, state: showConnection, denied: askForToken });
