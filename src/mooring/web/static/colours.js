// Colours of use. They run from dark to light (or back) through blue and yellow, so that neither
// red from green nor colour at all has to be seen: the lightness alone tells how full a node is.

const LIGHT = [[228, 234, 243], [150, 178, 214], [72, 118, 178], [28, 68, 128], [8, 26, 62]];
const DARK = [[30, 42, 62], [52, 84, 130], [112, 122, 134], [190, 176, 96], [253, 231, 69]];
const dark = matchMedia("(prefers-color-scheme: dark)");

const STEPS = 64;

function between(stops, share) {
  const at = share * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[low].map((each, which) => each + (stops[low + 1][which] - each) * (at - low));
  return `rgb(${mixed.map(Math.round).join(",")})`;
}

const scale = (stops) => Array.from({ length: STEPS + 1 }, (_, at) => between(stops, at / STEPS));
const scales = { light: scale(LIGHT), dark: scale(DARK) };
const inks = {
  light: { line: "#9aa5b1", mark: "#c2410c", focus: "#c2410c", chart: "#0b57a4", fill: "#0b57a422" },
  dark: { line: "#5b6875", mark: "#ff8a5c", focus: "#ff8a5c", chart: "#7db8ff", fill: "#7db8ff22" },
};

const theme = () => (dark.matches ? "dark" : "light");

export const ink = () => inks[theme()];

// The colour of a use in thousandths.
export const colour = (use) => scales[theme()][Math.min(STEPS, Math.round((use / 1000) * STEPS))];

export const whenThemeChanges = (then) => dark.addEventListener("change", then);

export function drawScale(canvas) {
  const context = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x++) {
    context.fillStyle = colour((1000 * x) / canvas.width);
    context.fillRect(x, 0, 1, canvas.height);
  }
}
