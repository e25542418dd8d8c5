// What happened lately, the latest first: placements, preemptions, failures.

import { clock, count, element, firstSentence, link } from "./elements.js";
import { timed } from "./pace.js";

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

  #text({ kind, owner, pod, count: pods, text }) {
    const one = pods === 1;
    const who = one || owner.startsWith("pod ") ? [link(pod, () => this.openPod(pod))] : [`${count(pods, "pod")} of ${owner}`];
    if (kind === "failed") return [...who, element("span", { class: "hint", text: ` not placed: ${firstSentence(text)}` })];
    const node = link(text, () => this.openNode(text));
    if (kind === "preempting") return [...who, " makes room on ", node];
    return one ? [...who, " placed on ", node] : [...who, " placed, the latest on ", node];
  }
}
