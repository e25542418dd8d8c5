// What the map shows instead of use while something is asked: who takes a pod, or who has pods of an owner.

import { verdictColour } from "./colours.js";
import { count } from "./elements.js";

// Categories are { name, why, count, at }: `at` chooses the colour, -1 is for nodes that take the pod.
export class Overlay {
  constructor(title, categories, of, { notes = null } = {}) {
    Object.assign(this, { title, categories, of, notes });
    // Names of nodes that stand out; null if none does.
    this.bright = null;
  }

  // The category of a node.
  category(name) {
    return this.categories[this.of(name)];
  }

  isDim(name) {
    return this.bright !== null && !this.bright.has(name);
  }

  describe(name) {
    const found = this.category(name), note = this.notes?.(name);
    return found ? [found.name, note ?? found.why].filter(Boolean).join(": ") : "";
  }

  colour(name) {
    const found = this.category(name);
    return verdictColour(found ? found.at : Infinity);
  }
}

// Who takes a pod and who rejects it, from its explanation; null if nobody was asked.
export function verdicts(explanation) {
  const all = allRejections(explanation);
  if (!explanation || (!all.length && !explanation.feasibleCount)) return null;
  const takes = { name: "takes it", why: "", count: explanation.feasibleCount, at: -1 };
  const places = new Map();
  const categories = [takes, ...all.map((each, at) => {
    for (const name of each.nodes) places.set(name, at + 1);
    const why = reasonsOf(each, all), isAlone = all.every((other) => other === each || other.plugin !== each.plugin);
    return { name: each.plugin, why, count: each.count, at, isAlone };
  })];
  // Where a pod is rejected before nodes are looked at, no node is named.
  const others = explanation.feasibleCount ? 0 : all.findIndex((each) => !each.nodes.length) + 1;
  return new Overlay(`what nodes say to pod ${explanation.pod}`, categories, (name) => places.get(name) ?? others);
}

export const allRejections = (explanation) => [...(explanation?.rejections ?? []), ...(explanation?.leftOut ? [explanation.leftOut] : [])];

// Why a plugin rejects nodes. Two rejections may differ only in whether evicting pods can help.
export function reasonsOf({ plugin, reasons, code }, all) {
  const text = reasons.join(", "), same = all.filter((each) => each.plugin === plugin && each.reasons.join(", ") === text);
  return same.length > 1 && code === "UnschedulableAndUnresolvable" ? `${text}, even without other pods` : text;
}

// Which nodes have pods of a namespace or an owner, from their counts by node.
export function presence(title, counts) {
  const nodes = Object.keys(counts).length;
  const categories = [{ name: "has pods of it", why: "", count: nodes, at: -1 }, { name: "has none", why: "", count: null, at: Infinity }];
  const of = (name) => (name in counts ? 0 : 1);
  return new Overlay(title, categories, of, { notes: (name) => (name in counts ? count(counts[name], "pod") : "") });
}
