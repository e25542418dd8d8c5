// How long drawing takes: kept to be looked at, in milliseconds.

const kept = new Map();

export function timed(name, draw) {
  const began = performance.now();
  draw();
  const times = kept.get(name) ?? [];
  times.push(performance.now() - began);
  if (times.length > 1_000) times.shift();
  kept.set(name, times);
}

// Reads in the console, and in tests: how often, the mean, the 95th of a hundred, the worst.
globalThis.mooragePace = () => Object.fromEntries([...kept].map(([name, times]) => {
  const sorted = times.toSorted((one, other) => one - other);
  const mean = sorted.reduce((sum, each) => sum + each, 0) / sorted.length;
  const p95 = sorted[Math.floor(0.95 * (sorted.length - 1))];
  return [name, { count: sorted.length, mean, p95, worst: sorted.at(-1) }];
}));
