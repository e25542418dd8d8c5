// The page: puts its parts together.

import { Charts } from "./charts.js";
import { startTheme, whenThemeChanges } from "./colours.js";
import { Detail } from "./detail.js";
import { find, say } from "./elements.js";
import { EventList } from "./events.js";
import { Flights } from "./flights.js";
import { NodesPart } from "./nodes.js";
import { timed } from "./pace.js";
import { QueueTree } from "./queue.js";
import { Search } from "./search.js";
import { State } from "./state.js";
import { follow, remember } from "./stream.js";
import { showFigures, Totals } from "./totals.js";
import { Usage } from "./usage.js";
import { View } from "./view.js";

const SAYS = { live: "Live", lost: "The server does not answer. Trying again.", denied: "Not signed in" };

startTheme(find("theme"));
const state = new State(), view = new View();
const nodes = new NodesPart(state, view, (name) => detail.choose(name));
const detail = new Detail(view, nodes);
const openNode = (name) => detail.openNode(name), openPod = (key) => detail.openPod(key);
const queue = new QueueTree({ tree: find("queue-tree"), count: find("queue-count") }, state, view, openPod);
const events = new EventList(find("event-list"), state, { openPod, openNode });
const flights = new Flights(find("flights"), find("queue"), (row) => nodes.middle(row));
const charts = new Charts(find("charts"));
const totals = new Totals(find("totals"), state, view);
const usage = new Usage(state, view, { openPod, cover: (overlay) => nodes.cover("of", overlay) });
const search = new Search({ openNode, openPod });

function tell(message) {
  timed("apply", () => {
    const changed = state.apply(message);
    nodes.changed(changed, message);
    detail.changed(message, changed);
    if (changed.queue) queue.changed();
    if (changed.events) events.changed();
    if (!nodes.overlay) flights.start(changed.arrivals.map(([, row]) => row));
    if (message.totals || message.resources) totals.draw();
    if (state.figures) showFigures(state.figures, find);
    charts.draw(state.samples);
    if (message.reset) nodes.rearrange();
    // What a link asks for is read once it is known that it may be, and there is a map to show it on.
    if (state.names.size || state.figures?.nodes === 0) begin();
  });
}

let begun = false;

function begin() {
  if (begun) return;
  begun = true;
  detail.start();
  usage.start();
}

function showConnection(now) {
  const status = find("status");
  if (status.dataset.state === now) return;
  status.dataset.state = now;
  status.textContent = SAYS[now];
}

// The first time, nobody has given a token that could be refused.
let isAsked = false;

function askForToken(why) {
  const form = find("login"), token = find("token");
  find("login-why").textContent = isAsked ? why : "To look at this cluster, give its token.";
  isAsked = true;
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
  nodes.redraw();
  totals.draw();
  charts.draw(state.samples, { anyway: true });
}

// Controls of the queue, which are in the address as well.
for (const name of ["queue", "place", "only"]) {
  const place = find(`${name}-by`);
  place.value = view.get(name);
  place.addEventListener("input", () => view.set({ [name]: place.value }));
  view.listen(() => { if (place.value !== view.get(name)) place.value = view.get(name); });
}

find("share").addEventListener("click", async () => {
  let text = "The link is copied";
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    text = "The link is in the address bar";
  }
  say(find("share-says"), text);
  setTimeout(() => say(find("share-says"), ""), 3_000);
});
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
queue.changed();
events.changed();
follow({ tell, state: showConnection, denied: askForToken });
