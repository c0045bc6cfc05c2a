// Draws series on a canvas. In a pixel column with many values only the first, smallest, largest
// and last are drawn: no peak is lost, and a million values take no longer than a thousand.

function drawSeries(cx, series, scale, colour) {
  cx.strokeStyle = colour;
  cx.fillStyle = colour;
  cx.setLineDash([]);
  cx.lineWidth = 1.5;
  cx.lineJoin = "round";
  const draw = {
    line: drawCurve, dashes: drawCurve, step: drawCurve, dashedstep: drawCurve,
    dots: drawDots, ticks: drawTicks, diamonds: drawDiamonds, crosses: drawCrosses, letters: drawLetters, moments: drawMoments,
  }[series.mark] ?? drawBars;
  draw(cx, series, scale);
  cx.setLineDash([]);
}

// Calls `each(x, from, to)` for every pixel column with values.
function eachColumn(series, scale, from, to, each) {
  let at = from;
  while (at < to) {
    const column = Math.floor(scale.x(series.x[at]));
    // The start of the next column.
    const edge = scale.toX(column + 1);
    let end = at + 1;
    if (end < to && series.x[end] < edge) {
      let high = to;
      while (end < high) {
        const middle = (end + high) >> 1;
        if (series.x[middle] < edge) end = middle + 1;
        else high = middle;
      }
    }
    each(column, at, end);
    at = end;
  }
}

function drawCurve(cx, series, scale) {
  const from = Math.max(0, series.at(scale.x0));
  const to = Math.min(series.n, series.from(scale.x1) + 1);
  if (from >= to) return;
  if (series.mark.startsWith("dash")) cx.setLineDash([6, 4]);
  cx.beginPath();
  const first = scale.y(series.y[from]);
  cx.moveTo(scale.x(series.x[from]), first);
  let last = first;
  const go = (x, y) => {
    if (series.isStep) cx.lineTo(x, last);
    cx.lineTo(x, y);
    last = y;
  };
  if (to - from < 4 * scale.width) {
    for (let at = from + 1; at < to; at++) go(scale.x(series.x[at]), scale.y(series.y[at]));
  } else {
    eachColumn(series, scale, from, to, (column, begin, end) => {
      if (end - begin < 4) {
        for (let at = begin; at < end; at++) go(scale.x(series.x[at]), scale.y(series.y[at]));
        return;
      }
      const [low, high] = series.extremes(begin, end);
      const x = column + 0.5;
      go(x, scale.y(series.y[begin]));
      cx.lineTo(x, scale.y(low));
      cx.lineTo(x, scale.y(high));
      go(x, scale.y(series.y[end - 1]));
    });
  }
  // A step value extends to the end of the view, but not beyond the end of the recording.
  if (series.isStep) cx.lineTo(Math.min(scale.x(scale.end), scale.left + scale.width), last);
  cx.stroke();
}

function visible(series, scale) {
  return [series.from(scale.x0), series.from(scale.x1 + 1e-9 * (scale.x1 - scale.x0) + 1)];
}

// Calls `one(x, low, high)` for each value in view, or for each pixel column if there are many.
function eachMark(series, scale, one, slack = 1) {
  const [from, to] = visible(series, scale);
  if (to - from < slack * scale.width) {
    for (let at = from; at < to; at++) one(scale.x(series.x[at]), scale.y(series.y[at]), scale.y(series.top[at]), at);
    return false;
  }
  eachColumn(series, scale, from, to, (column, begin, end) => {
    const [low, high] = series.extremes(begin, end);
    one(column + 0.5, scale.y(low), scale.y(high), begin);
  });
  return true;
}

const BAR_ENDS = 7;

function drawBars(cx, series, scale) {
  const wide = series.mark === "bare" ? 3 : 1.5;
  const shaped = { crossed: cross, ringed: ring }[series.mark];
  cx.lineWidth = wide;
  const middles = [];
  cx.beginPath();
  eachMark(series, scale, (x, low, high) => {
    const tall = low - high;
    const bottom = tall < 1 ? high + 1 : low;
    cx.moveTo(x, bottom);
    cx.lineTo(x, high);
    if (tall >= BAR_ENDS && series.mark !== "bare") {
      cx.moveTo(x - 2.5, low);
      cx.lineTo(x + 2.5, low);
      cx.moveTo(x - 2.5, high);
      cx.lineTo(x + 2.5, high);
    }
    if (shaped) middles.push(x, (low + high) / 2);
  });
  cx.stroke();
  if (!shaped) return;
  cx.lineWidth = 1.75;
  cx.beginPath();
  let lastX = -Infinity;
  let lastY = 0;
  for (let at = 0; at < middles.length; at += 2) {
    // Markers at the same position are drawn once.
    if (middles[at] - lastX < 3 && Math.abs(middles[at + 1] - lastY) < 3) continue;
    [lastX, lastY] = [middles[at], middles[at + 1]];
    shaped(cx, lastX, lastY);
  }
  cx.stroke();
}

function cross(cx, x, y) {
  cx.moveTo(x - 4, y - 4);
  cx.lineTo(x + 4, y + 4);
  cx.moveTo(x - 4, y + 4);
  cx.lineTo(x + 4, y - 4);
}

function ring(cx, x, y) {
  cx.moveTo(x + 4.5, y);
  cx.arc(x, y, 4.5, 0, 2 * Math.PI);
}

function drawDots(cx, series, scale) {
  const [from, to] = visible(series, scale);
  const size = to - from > 4 * scale.width ? 1 : to - from > scale.width / 3 ? 1.25 : to - from > 120 ? 2.25 : 3.5;
  cx.beginPath();
  const columns = eachMark(series, scale, (x, low, high) => {
    if (low - high > 2 * size) cx.rect(x - 0.5, high, 1, low - high);
    else {
      cx.moveTo(x + size, low);
      cx.arc(x, low, size, 0, 2 * Math.PI);
    }
  }, 6);
  if (columns) cx.globalAlpha = 0.8;
  cx.fill();
  cx.globalAlpha = 1;
}

function drawTicks(cx, series, scale) {
  cx.beginPath();
  eachMark(series, scale, (x, low, high) => {
    cx.moveTo(x - 1, low);
    cx.lineTo(x + 4, low);
    if (low - high > 1) {
      cx.moveTo(x, low);
      cx.lineTo(x, high);
    }
  }, 2);
  cx.stroke();
}

function drawDiamonds(cx, series, scale) {
  // Many letters must not hide the curve below them.
  const [from, to] = visible(series, scale);
  const size = to - from > scale.width / 6 ? 1.5 : 4;
  cx.beginPath();
  let last = [-Infinity, 0];
  eachMark(series, scale, (x, y) => {
    if (x - last[0] < 2 && Math.abs(y - last[1]) < 2) return;
    last = [x, y];
    cx.moveTo(x, y - size);
    cx.lineTo(x + size * 0.875, y);
    cx.lineTo(x, y + size);
    cx.lineTo(x - size * 0.875, y);
    cx.closePath();
  });
  cx.fill();
}

function drawCrosses(cx, series, scale) {
  cx.lineWidth = 1.75;
  cx.beginPath();
  eachMark(series, scale, (x, y) => cross(cx, x, y));
  cx.stroke();
}

function drawLetters(cx, series, scale) {
  cx.font = "700 11px sans-serif";
  cx.textAlign = "center";
  cx.textBaseline = "middle";
  let last = -Infinity;
  eachMark(series, scale, (place, y, _, at) => {
    // Letters at the edges are not clipped.
    const x = Math.max(scale.left + 5, Math.min(place, scale.left + scale.width - 5));
    if (x - last < 9) return;
    last = x;
    cx.fillText(series.wordOf(at)[0] ?? "?", x, y);
  });
}

function drawMoments(cx, series, scale) {
  cx.lineWidth = 1;
  cx.setLineDash([3, 3]);
  cx.globalAlpha = 0.7;
  cx.beginPath();
  eachMark(series, scale, (x) => {
    cx.moveTo(x, scale.top);
    cx.lineTo(x, scale.top + scale.height);
  });
  cx.stroke();
  cx.setLineDash([]);
  cx.globalAlpha = 1;
  cx.font = "11px sans-serif";
  cx.textAlign = "left";
  cx.textBaseline = "top";
  // Labels are drawn if they fit before the next line.
  const named = [];
  eachMark(series, scale, (x, _, __, at) => named.push([x, series.wordOf(at)]));
  named.forEach(([x, text], index) => {
    const next = index + 1 < named.length ? named[index + 1][0] : scale.left + scale.width;
    if (x + cx.measureText(text).width + 6 <= next) cx.fillText(text, x + 3, scale.top + 2);
  });
}

// The legend sample of a series.
function sample(series) {
  const colour = `var(--${series.role})`;
  const line = (more) => `<path d="M1 7H21" stroke="${colour}" stroke-width="2.5" ${more}/>`;
  const bar = (more = "") => `<path d="M11 1V13M8 1H14M8 13H14" stroke="${colour}" stroke-width="1.75" fill="none"/>${more}`;
  const shapes = {
    line: line(""), step: `<path d="M1 11H8V6H15V3H21" stroke="${colour}" stroke-width="2" fill="none"/>`,
    dashes: line('stroke-dasharray="6 3"'), dashedstep: line('stroke-dasharray="6 3"'),
    dots: `<g fill="${colour}"><circle cx="4" cy="9" r="2"/><circle cx="11" cy="5" r="2"/><circle cx="18" cy="8" r="2"/></g>`,
    ticks: `<path d="M8 7H15" stroke="${colour}" stroke-width="2"/>`,
    diamonds: `<path d="M11 2L15 7L11 12L7 7Z" fill="${colour}"/>`,
    crosses: `<path d="M7 3L15 11M15 3L7 11" stroke="${colour}" stroke-width="2"/>`,
    bars: bar(), bare: `<path d="M11 1V13" stroke="${colour}" stroke-width="3"/>`,
    crossed: bar(`<path d="M7 3L15 11M15 3L7 11" stroke="${colour}" stroke-width="1.75"/>`),
    ringed: bar(`<circle cx="11" cy="7" r="4.5" fill="none" stroke="${colour}" stroke-width="1.75"/>`),
    letters: `<text x="11" y="12" text-anchor="middle" font-size="13" font-weight="700" fill="${colour}">S</text>`,
    moments: `<path d="M11 0V14" stroke="${colour}" stroke-dasharray="3 2" stroke-width="1.5"/>`,
  };
  return `<svg width="22" height="14" viewBox="0 0 22 14" aria-hidden="true">${shapes[series.mark]}</svg>`;
}
