// The waiting pods, by owner or in other groups. Of long lists only the beginning is in the document.

import { count, element, firstSentence, number, say } from "./elements.js";
import { timed } from "./pace.js";

// Lines in the document at first, and how many more come when the end is near.
const PART = 80;
const BACKOFF = new Set(["backoff", "error backoff"]);
const SAYS = { backoff: "backing off", "error backoff": "backing off", "in flight": "being placed" };
const placeText = (place) => SAYS[place] ?? place;

// How pods are put together; an empty name means that a pod stands alone.
const GROUPS = {
  owner: (pod) => (pod.owner.startsWith("pod ") ? "" : pod.owner),
  gang: (pod) => pod.group,
  namespace: (pod) => pod.key.split("/")[0],
  reason: (pod) => pod.reason || "waiting for their turn",
  none: () => "",
};

export class QueueTree {
  constructor({ tree, count: total }, state, view, open) {
    Object.assign(this, { tree, total, state, view, open });
    this.unfolded = new Set();
    // What is shown: { id, level, pod | group }.
    this.lines = [];
    this.most = PART;
    this.cursor = "";
    this.elements = new Map();
    this.asked = false;
    tree.addEventListener("scroll", () => this.#more(), { passive: true });
    tree.addEventListener("keydown", (event) => this.#key(event));
    tree.addEventListener("click", (event) => this.#click(event));
    view.listen((changed) => {
      if (!["queue", "place", "only"].some((name) => changed.has(name))) return;
      this.most = PART;
      tree.scrollTop = 0;
      this.changed();
    });
  }

  changed() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      timed("queue", () => this.#draw());
    });
  }

  #draw() {
    const pods = this.#wanted();
    this.lines = this.#lay(pods);
    if (!this.lines.some(({ id }) => id === this.cursor)) this.cursor = this.lines[0]?.id ?? "";
    const shown = this.lines.slice(0, this.most), kept = new Set(shown.map(({ id }) => id));
    for (const [id, made] of this.elements) {
      if (!kept.has(id)) {
        made.remove();
        this.elements.delete(id);
      }
    }
    let after = null;
    for (const line of shown) {
      const made = this.#fill(line);
      const next = after ? after.nextSibling : this.tree.firstChild;
      if (next !== made) this.tree.insertBefore(made, next);
      after = made;
    }
    this.#point();
    this.#count(pods.length);
  }

  #wanted() {
    const place = this.view.get("place"), only = this.view.get("only").trim(), all = [...this.state.queue.values()];
    const isThere = (pod) => !place || pod.place === place || (place === "backoff" && BACKOFF.has(pod.place));
    const isMeant = (pod) => !only || [pod.key, pod.owner, pod.group, pod.reason].some((text) => text.includes(only));
    return all.filter((pod) => isThere(pod) && isMeant(pod));
  }

  #lay(pods) {
    const nameOf = GROUPS[this.view.get("queue")] ?? GROUPS.owner, groups = new Map();
    for (const pod of pods) {
      const name = nameOf(pod), id = name ? `group ${name}` : `pod ${pod.key}`;
      if (!groups.has(id)) groups.set(id, { id, name, pods: [] });
      groups.get(id).pods.push(pod);
    }
    return [...groups.values()].sort((one, other) => other.pods.length - one.pods.length).flatMap((group) => {
      if (!group.name) return group.pods.map((pod) => ({ id: `pod ${pod.number}`, level: 1, pod }));
      const head = { id: group.id, level: 1, group };
      if (!this.unfolded.has(group.id)) return [head];
      return [head, ...group.pods.map((pod) => ({ id: `pod ${pod.number}`, level: 2, pod }))];
    });
  }

  #fill(line) {
    let made = this.elements.get(line.id);
    if (!made) {
      made = element("div", { role: "treeitem", id: `line-${line.id.replaceAll(/\s/g, "_")}`, class: line.group ? "group" : "pod" });
      made.append(element("div", { class: "who" }), element("div", { class: "why" }));
      this.elements.set(line.id, made);
    }
    made.dataset.id = line.id;
    made.setAttribute("aria-level", line.level);
    if (line.group) this.#fillGroup(made, line);
    else this.#fillPod(made, line.pod);
    return made;
  }

  #fillPod(made, pod) {
    const tries = pod.attempts > 1 ? `, ${pod.attempts} attempts` : "";
    const room = pod.nominated ? ` · others make room on ${pod.nominated}` : "";
    say(made.firstChild, pod.key);
    say(made.lastChild, `${placeText(pod.place)}${tries}${room}${pod.reason ? ` · ${firstSentence(pod.reason)}` : ""}`);
  }

  #fillGroup(made, { id, group }) {
    const open = this.unfolded.has(id), { pods, name } = group;
    made.setAttribute("aria-expanded", String(open));
    const places = tally(pods.map((pod) => placeText(pod.place)));
    const reasons = tally(pods.map((pod) => pod.reason).filter(Boolean)).filter(([text]) => text !== name);
    const where = places.map(([place, times]) => (places.length > 1 ? `${number(times)} ${place}` : place)).join(", ");
    const other = reasons.length > 1 ? ` (and ${count(reasons.length - 1, "other reason")})` : "";
    if (made.firstChild.children.length !== 2) made.firstChild.replaceChildren(element("span"), element("b", { class: "number" }));
    say(made.firstChild.firstChild, name);
    say(made.firstChild.lastChild, number(pods.length));
    made.firstChild.lastChild.setAttribute("aria-label", count(pods.length, "pod"));
    say(made.lastChild, `${where}${reasons.length ? ` · ${firstSentence(reasons[0][0])}${other}` : ""}`);
  }

  #count(pods) {
    const all = this.state.queue.size, empty = this.tree.querySelector(".empty");
    say(this.total, pods === all ? count(all, "pod") : `${number(pods)} of ${count(all, "pod")}`);
    if (this.lines.length) return empty?.remove();
    const text = all ? "No waiting pod matches." : "No pod waits. Those that cannot be placed at once appear here, with the reason.";
    if (empty) say(empty, text);
    else this.tree.append(element("p", { class: "empty", text }));
  }

  #more() {
    const { scrollTop, clientHeight, scrollHeight } = this.tree;
    if (this.most < this.lines.length && scrollTop + 2 * clientHeight > scrollHeight) {
      this.most += PART;
      this.changed();
    }
  }

  #point() {
    for (const [id, made] of this.elements) made.setAttribute("aria-selected", String(id === this.cursor));
    const active = this.elements.get(this.cursor);
    if (active) this.tree.setAttribute("aria-activedescendant", active.id);
    else this.tree.removeAttribute("aria-activedescendant");
  }

  #move(to) {
    const last = this.lines.length - 1, at = Math.max(0, Math.min(last, to));
    if (last < 0) return;
    this.cursor = this.lines[at].id;
    if (at >= this.most) this.most = at + PART;
    this.#draw();
    this.elements.get(this.cursor)?.scrollIntoView({ block: "nearest" });
  }

  #unfold(line, open) {
    if (open) this.unfolded.add(line.id);
    else this.unfolded.delete(line.id);
    this.#draw();
  }

  #key(event) {
    const at = this.lines.findIndex(({ id }) => id === this.cursor), line = this.lines[at];
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, PageUp: at - 8, PageDown: at + 8, Home: 0, End: this.lines.length - 1 }[event.key];
    if (to !== undefined) this.#move(to);
    else if (event.key === "ArrowRight" && line?.group) this.#unfold(line, true);
    else if (event.key === "ArrowLeft" && line?.group) this.#unfold(line, false);
    else if (event.key === "ArrowLeft" && line?.level === 2) this.#move(this.lines.findLastIndex(({ level }, which) => which < at && level === 1));
    else if (event.key === "Enter" && line) this.#enter(line);
    else return;
    event.preventDefault();
  }

  #enter(line) {
    if (line.group) this.#unfold(line, !this.unfolded.has(line.id));
    else this.open(line.pod.key);
  }

  #click(event) {
    const id = event.target.closest('[role="treeitem"]')?.dataset.id;
    const line = this.lines.find((each) => each.id === id);
    if (!line) return;
    this.cursor = id;
    this.#point();
    this.#enter(line);
  }
}

// Texts by how often they occur, the most frequent first.
function tally(texts) {
  const found = new Map();
  for (const text of texts) found.set(text, (found.get(text) ?? 0) + 1);
  return [...found].sort(([, one], [, other]) => other - one);
}
