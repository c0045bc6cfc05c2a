// Page setup.

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// Colours of the current theme, read once.
let colours = new Map();

function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

const groups = new Map();
const dark = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["system", "light", "dark"];
let theme = "system";

function paint() {
  const is = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = is;
  colours = new Map();
  for (const group of groups.values()) group.redraw();
}

const themeButton = document.getElementById("theme");
themeButton.addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  themeButton.textContent = `Theme: ${theme}`;
  paint();
});
dark.addEventListener("change", paint);
paint();

document.addEventListener("click", (event) => {
  const jump = event.target.closest?.(".jump");
  const group = jump && groups.get(jump.dataset.plots);
  if (!group) return;
  const [from, to] = [Number(jump.dataset.from), Number(jump.dataset.to)];
  group.show(from, to);
  group.cursor = from;
  group.host.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
});

async function begin() {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const spec of data.plots) {
    groups.set(spec.id, new Plots(document.getElementById(`plots-${spec.id}`), spec, await unpack(spec.packed)));
  }
  for (const spec of data.grids) {
    new Grid(document.getElementById(`grid-${spec.id}`), spec, await unpack(spec.places), await unpack(spec.values));
  }
  // The URL may select a range of the axis: #view=flow-0:1000000-2000000.
  const asked = /^#view=([\w-]+):(\d+)-(\d+)$/.exec(location.hash);
  if (asked) groups.get(asked[1])?.show(Number(asked[2]), Number(asked[3]));
  // Interface for tests: the range in view, and the drawing times.
  window.ackclock = {
    view: (id) => groups.get(id).view,
    show: (id, from, to) => groups.get(id).show(from, to),
    frames: (id) => groups.get(id).frames,
    points: (id) => groups.get(id).panels.reduce((sum, panel) => sum + panel.series.reduce((n, one) => n + one.n, 0), 0),
  };
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }));
}

begin().catch((error) => {
  const warning = element("p", { class: "warn" }, `The plots cannot be drawn: ${error.message}. They need a browser of 2023 or later.`);
  document.getElementById("content").prepend(warning);
  throw error;
});
