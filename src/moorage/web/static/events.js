// What happened lately, the latest first: placements, preemptions, failures.

import { clock, count, element, firstSentence, link } from "./elements.js";
import { timed } from "./pace.js";

// Pods that are evicted for another and named in its line; the rest is counted.
const NAMED = 3;
const MARKS = { placed: "→", failed: "✕", preempting: "⇄" };

export class EventList {
  constructor(place, state, { openPod, openNode }) {
    Object.assign(this, { place, state, openPod, openNode });
    this.asked = false;
  }

  changed() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      // What somebody is about to press must not move away.
      if (this.place.matches(":focus-within")) return;
      timed("events", () => this.#draw());
    });
  }

  #draw() {
    const { events } = this.state;
    if (!events.length) {
      const text = "Nothing has happened since somebody looks. Placements, failures and preemptions appear here.";
      return this.place.replaceChildren(element("li", { class: "empty", text }));
    }
    this.place.replaceChildren(...events.toReversed().map((event) => this.#line(event)));
  }

  #line(event) {
    const mark = element("span", { class: `mark ${event.kind}`, text: MARKS[event.kind], "aria-hidden": "true" });
    const when = element("time", { text: clock(event.at), datetime: new Date(1000 * event.at).toISOString() });
    return element("li", {}, mark, element("span", {}, ...this.#text(event)), when);
  }

  #text({ kind, owner, pod, count: pods, text, victims, victimCount }) {
    const one = pods === 1;
    if (kind === "preempting") return this.#preemption(owner, pod, text, victims ?? [], victimCount ?? 0);
    const who = one || owner.startsWith("pod ") ? [link(pod, () => this.openPod(pod))] : [`${count(pods, "pod")} of ${owner}`];
    if (kind === "failed") return [...who, element("span", { class: "hint", text: ` not placed: ${firstSentence(text)}` })];
    const node = link(text, () => this.openNode(text));
    return one ? [...who, " placed on ", node] : [...who, " placed, the latest on ", node];
  }

  // Who is evicted for whom, and where. The group that a gang belongs to is no pod to open.
  #preemption(owner, pod, node, victims, all) {
    const named = victims.slice(0, NAMED), left = all - named.length;
    const who = owner === `group ${pod}` ? owner : link(pod, () => this.openPod(pod));
    const parts = named.flatMap((key, at) => [at ? ", " : "", link(key, () => this.openPod(key))]);
    const more = left > 0 ? [element("span", { text: ` and ${count(left, "more pod")}`, title: victims.slice(NAMED).join(", ") })] : [];
    return [who, " evicts ", ...parts, ...more, ...(node ? [" from ", link(node, () => this.openNode(node))] : [])];
  }
}
