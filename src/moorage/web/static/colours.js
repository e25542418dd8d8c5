// Colours of use and of verdicts. Use runs from light to dark (or back) through blue and yellow, so
// that neither red from green nor colour at all has to be seen: the lightness alone tells how full a
// node is. Verdicts differ in lightness too, and their names are beside them.

const LIGHT = [[226, 234, 245], [150, 184, 224], [70, 124, 190], [28, 74, 140], [10, 32, 74]];
const DARK = [[34, 46, 66], [50, 86, 136], [104, 128, 150], [196, 182, 98], [253, 231, 90]];
const STEPS = 64;

function mix(stops, share) {
  const at = share * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((each, which) => Math.round(each + (stops[low + 1][which] - each) * (at - low)));
}

const scale = (stops) => Array.from({ length: STEPS + 1 }, (_, at) => mix(stops, at / STEPS));
const scales = { light: scale(LIGHT), dark: scale(DARK) };
const inks = {
  light: {
    card: "#ffffff", ink: "#16202c", faint: "#56626f", line: "#c3ccd6", mark: "#c2410c", chart: "#0b57a4", other: "#b45309",
    takes: "#0f766e", verdicts: ["#e58606", "#5d69b1", "#cc3a8e", "#99702b", "#2f8ac4", "#a5304a"], rest: "#8a97a5",
  },
  dark: {
    card: "#181f27", ink: "#e6ebf0", faint: "#9aa7b4", line: "#3b4855", mark: "#ff8a5c", chart: "#7db8ff", other: "#f5b942",
    takes: "#4fd1b5", verdicts: ["#f59e2d", "#97a3f0", "#f06bb4", "#cba25a", "#5cb8ef", "#e5647e"], rest: "#66737f",
  },
};

const system = matchMedia("(prefers-color-scheme: dark)");
const KEY = "moorage.theme";
const listeners = [];

const chosen = () => document.documentElement.dataset.theme;
const theme = () => chosen() || (system.matches ? "dark" : "light");

export const ink = () => inks[theme()];

const shade = (use) => scales[theme()][Math.min(STEPS, Math.round((use / 1000) * STEPS))];

// The colour of a use in thousandths, and one to write on it.
export const colour = (use) => `rgb(${shade(use).join(",")})`;
export function inkOn(use) {
  const [red, green, blue] = shade(use);
  return 0.3 * red + 0.6 * green + 0.1 * blue > 140 ? "#10151b" : "#ffffff";
}

// The colour of a verdict: -1 is for the nodes that take the pod.
export function verdictColour(at) {
  const { takes, verdicts, rest } = ink();
  return at < 0 ? takes : verdicts[at] ?? rest;
}

export function whenThemeChanges(then) {
  listeners.push(then);
}

const tellAll = () => listeners.forEach((each) => each());

// The system's theme unless somebody chose the other one here.
export function startTheme(place) {
  const kept = localStorage.getItem(KEY);
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  const show = () => {
    place.textContent = theme() === "dark" ? "Light" : "Dark";
    place.setAttribute("aria-label", `Switch to ${theme() === "dark" ? "light" : "dark"} colours`);
  };
  show();
  place.addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark";
    const usual = (next === "dark") === system.matches;
    document.documentElement.dataset.theme = usual ? "" : next;
    if (usual) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
    show();
    tellAll();
  });
  system.addEventListener("change", () => { show(); tellAll(); });
}

export function drawScale(canvas) {
  const context = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x++) {
    context.fillStyle = colour((1000 * x) / canvas.width);
    context.fillRect(x, 0, 1, canvas.height);
  }
}
