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
let theme = remembered("theme");
if (!THEMES.includes(theme)) theme = "system";

// Values that the browser keeps for all pages of a folder or a site. It may refuse to.
function remembered(name) {
  try {
    return localStorage.getItem(`ackclock-${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`ackclock-${name}`, value);
  } catch {
    // The next page has the default.
  }
}

function paint() {
  const is = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = is;
  themeButton.textContent = `Theme: ${theme}`;
  colours = new Map();
  for (const group of groups.values()) group.redraw();
}

const themeButton = document.getElementById("theme");
themeButton.addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  remember("theme", theme);
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

// The address has the range in view of the plots that were moved last (#view=flow-0:1000000-2000000),
// so that a link and a reload show it. Browsers limit how often it may change.
let pendingAddress = 0;

function keepInAddress(group) {
  clearTimeout(pendingAddress);
  pendingAddress = setTimeout(() => {
    const [from, to] = group.view.map(Math.round);
    const [low, high] = group.full.map(Math.round);
    const isAll = from <= low && to >= high;
    if (isAll && !location.hash.startsWith("#view=")) return;
    const address = isAll ? location.pathname + location.search : `#view=${group.id}:${from}-${to}`;
    try {
      history.replaceState(null, "", address);
    } catch {
      // A page within another has no address of its own.
    }
  }, 300);
}

function showAddress() {
  const asked = /^#view=([\w-]+):(-?\d+)-(\d+)$/.exec(location.hash);
  if (asked) groups.get(asked[1])?.show(Number(asked[2]), Number(asked[3]));
}

async function begin() {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const spec of data.plots) {
    groups.set(spec.id, new Plots(document.getElementById(`plots-${spec.id}`), spec, await unpack(spec.packed)));
  }
  for (const spec of data.grids) {
    new Grid(document.getElementById(`grid-${spec.id}`), spec, await unpack(spec.places), await unpack(spec.values));
  }
  showAddress();
  window.addEventListener("hashchange", showAddress);
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
