// What is looked at and how. It is in the address, so a link shows others the same.

const DEFAULTS = {
  resource: "", by: "", sort: "name", filter: "",
  queue: "owner", place: "", only: "",
  tab: "namespace", of: "",
  node: "", pod: "",
};

export class View {
  constructor() {
    this.listeners = [];
    this.now = read();
    addEventListener("hashchange", () => this.#become(read()));
    addEventListener("popstate", () => this.#become(read()));
  }

  get(name) {
    return this.now[name];
  }

  // Called with the set of names whose values have changed.
  listen(listener) {
    this.listeners.push(listener);
  }

  // `opens` makes it a step that the browser can go back from.
  set(values, { opens = false } = {}) {
    const next = { ...this.now, ...values };
    if (Object.entries(values).every(([name, value]) => this.now[name] === value)) return;
    history[opens ? "pushState" : "replaceState"](null, "", address(next));
    this.#become(next);
  }

  #become(next) {
    const changed = new Set(Object.keys(DEFAULTS).filter((name) => this.now[name] !== next[name]));
    this.now = next;
    if (changed.size) this.listeners.forEach((listener) => listener(changed));
  }
}

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, usual]) => [name, given.get(name) ?? usual]));
}

function address(values) {
  const said = Object.entries(values).filter(([name, value]) => value !== DEFAULTS[name]);
  const hash = new URLSearchParams(said).toString().replaceAll("%2F", "/");
  return hash ? `#${hash}` : location.pathname + location.search;
}
