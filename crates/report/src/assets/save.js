// Files of the plots as they are shown: a picture, and the values in view.

const FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif";

function save(blob, extension, group) {
  const name = `${document.title}-${group.id}`.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80);
  const link = element("a", { href: URL.createObjectURL(blob), download: `${name}.${extension}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The names of the series of a panel in lines of `width`, and the height of the lines.
function legendOf(cx, panel, width) {
  const entries = [];
  let [x, y] = [0, 0];
  for (const series of panel.series) {
    if (!series.shown || !series.n) continue;
    const wide = cx.measureText(series.name).width + 40;
    if (x > 0 && x + wide > width) [x, y] = [0, y + 18];
    entries.push({ series, x, y });
    x += wide;
  }
  return { entries, height: y + 22 };
}

function drawEntry(cx, { series }, x, y) {
  cx.strokeStyle = cx.fillStyle = colour(series.role);
  cx.lineWidth = 2.5;
  cx.setLineDash(series.mark.startsWith("dashe") ? [6, 3] : []);
  cx.beginPath();
  if (series.isCurve) {
    cx.moveTo(x, y + 7);
    cx.lineTo(x + 20, y + 7);
    cx.stroke();
  } else {
    cx.arc(x + 10, y + 7, 4, 0, 2 * Math.PI);
    cx.fill();
  }
  cx.setLineDash([]);
  cx.fillStyle = colour("ink");
  cx.fillText(series.name, x + 26, y);
}

// The title, and for each panel its heading, its legend and its plot.
function picture(group) {
  const [pad, line, ratio] = [12, 22, window.devicePixelRatio || 1];
  const canvas = element("canvas");
  const cx = canvas.getContext("2d");
  cx.font = `12px ${FONT}`;
  const wide = group.panels[0].frame.full[0];
  const legends = group.panels.map((panel) => legendOf(cx, panel, wide));
  const heights = group.panels.map((panel, index) => line + legends[index].height + panel.frame.full[1]);
  const tall = heights.reduce((sum, height) => sum + height, 2 * pad + line);
  canvas.width = Math.round((wide + 2 * pad) * ratio);
  canvas.height = Math.round(tall * ratio);
  cx.scale(ratio, ratio);
  cx.fillStyle = colour("card");
  cx.fillRect(0, 0, wide + 2 * pad, tall);
  cx.textBaseline = "top";
  const heading = (text, size, y) => {
    cx.font = `600 ${size}px ${FONT}`;
    cx.fillStyle = colour("ink");
    cx.fillText(text, pad, y, wide);
    cx.font = `12px ${FONT}`;
  };
  heading(`${document.title}: ${group.title}`, 14, pad);
  let y = pad + line;
  group.panels.forEach((panel, index) => {
    heading(panel.y.title, 12, y + 4);
    for (const entry of legends[index].entries) drawEntry(cx, entry, pad + entry.x, y + line + entry.y);
    cx.drawImage(panel.canvas, pad, y + line + legends[index].height, ...panel.frame.full);
    y += heights[index];
  });
  return canvas;
}

// A field of a CSV file (RFC 4180). A spreadsheet would take a name that begins like a formula for one.
function field(text) {
  if (/^[=+@\t-]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv(rows) {
  return new Blob([rows.map((row) => `${row.map(field).join(",")}\r\n`).join("")], { type: "text/csv" });
}

// Every value in view, a row each; of a curve also the value that holds at the left end.
function valuesInView(group) {
  const [from, to] = group.view;
  const plain = (value, axis) => exact(value, axis.decimals).replaceAll(",", "").replace("−", "-");
  const named = (axis) => (axis.unit ? `${axis.title} (${axis.unit})` : axis.title);
  const rows = [["panel", "series", named(group.x), "value", "upper", "unit", "label"]];
  for (const panel of group.panels) {
    for (const series of panel.series) {
      if (!series.shown || !series.n) continue;
      const first = series.isCurve ? Math.max(0, series.at(from)) : series.from(from);
      const last = series.at(to);
      for (let index = first; index <= last; index++) {
        const isMoment = series.mark === "moments";
        const value = isMoment ? "" : plain(series.y[index], panel.y);
        const upper = series.bars ? plain(series.top[index], panel.y) : "";
        rows.push([panel.y.title, series.name, plain(series.x[index], group.x), value, upper, isMoment ? "" : panel.y.unit, series.wordOf(index)]);
      }
    }
  }
  return rows;
}

// Every cell that a grid shows, a row each.
function valuesOfCells(grid) {
  const { cells, wide, tall } = grid.cells();
  const [name, unit] = grid.figures[grid.figure];
  const axis = (index) => (index < 0 ? { name: "", values: [""] } : grid.axes[index]);
  const [down, across] = [axis(grid.down), axis(grid.across)];
  const rows = [[down.name, across.name, unit ? `${name} (${unit})` : name, "half of the 95 % interval", "runs", "least", "most"]];
  for (let row = 0; row < tall; row++) {
    for (let column = 0; column < wide; column++) {
      const cell = cells[row * wide + column];
      const numbers = cell.n ? [cell.mean, grid.half(cell) ?? "", cell.n, cell.least, cell.most] : ["", "", 0, "", ""];
      rows.push([down.values[row], across.values[column], ...numbers.map(String)]);
    }
  }
  return rows;
}

function savePicture(group) {
  picture(group).toBlob((blob) => save(blob, "png", group), "image/png");
}

function saveValues(group) {
  save(csv(valuesInView(group)), "csv", group);
}
