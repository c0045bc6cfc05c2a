// Mouse, touch and keyboard input.

const NEAR = 4;

function addGestures(group) {
  for (const panel of group.panels) {
    addPointers(group, panel);
    addWheel(group, panel);
    addKeys(group, panel);
  }
}

function place(panel, event) {
  const box = panel.over.getBoundingClientRect();
  const { left, width, top, height } = panel.frame;
  return [
    Math.max(left, Math.min(event.clientX - box.left, left + width)),
    Math.max(top, Math.min(event.clientY - box.top, top + height)),
  ];
}

function addPointers(group, panel) {
  const over = panel.over;
  const down = new Map();
  let begun = null;
  let pinch = null;

  const fingers = () => [...down.values()].map(([x]) => x).sort((a, b) => a - b);

  over.addEventListener("pointerdown", (event) => {
    if (event.button > 1) return;
    const [x, y] = place(panel, event);
    down.set(event.pointerId, [x, y]);
    over.setPointerCapture(event.pointerId);
    const pans = event.pointerType === "touch" || event.button === 1 || event.shiftKey !== group.isPanning;
    begun = { x, y, pans, view: [...group.view], moved: false };
    if (down.size === 2) {
      const [a, b] = fingers();
      const scale = panel.drawn;
      pinch = { from: scale.toX(a), to: scale.toX(b) };
      group.box = null;
    }
    group.hover(panel, x, y);
  });

  over.addEventListener("pointermove", (event) => {
    const [x, y] = place(panel, event);
    if (down.has(event.pointerId)) down.set(event.pointerId, [x, y]);
    if (pinch && down.size === 2) {
      // The points under the fingers stay there.
      const [a, b] = fingers();
      const { left, width } = panel.frame;
      const per = (pinch.to - pinch.from) / Math.max(8, b - a);
      const from = pinch.from - (a - left) * per;
      group.show(from, from + width * per);
    } else if (begun && down.size === 1) {
      begun.moved ||= Math.abs(x - begun.x) > NEAR || Math.abs(y - begun.y) > NEAR;
      if (begun.moved && begun.pans) {
        const [from, to] = begun.view;
        const by = ((begun.x - x) / panel.frame.width) * (to - from);
        const [low, high] = group.full;
        const kept = Math.max(low - from, Math.min(by, high - to));
        group.show(from + kept, to + kept);
      } else if (begun.moved) {
        const tall = Math.abs(y - begun.y) > 24 && Math.abs(x - begun.x) > NEAR;
        group.box = { panel, x0: begun.x, x1: x, y0: begun.y, y1: y, tall };
      }
    }
    group.hover(panel, x, y);
  });

  const up = (event) => {
    down.delete(event.pointerId);
    if (down.size < 2) pinch = null;
    const box = group.box;
    group.box = null;
    begun = down.size ? begun : null;
    if (!box || event.type === "pointercancel" || Math.abs(box.x1 - box.x0) <= NEAR) {
      group.point();
      return;
    }
    const scale = panel.drawn;
    if (box.tall) panel.held = [scale.toY(Math.max(box.y0, box.y1)), scale.toY(Math.min(box.y0, box.y1))];
    group.show(scale.toX(Math.min(box.x0, box.x1)), scale.toX(Math.max(box.x0, box.x1)));
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);
  over.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch" && !down.size) group.leave();
  });
  over.addEventListener("dblclick", () => group.reset());
}

function addWheel(group, panel) {
  panel.over.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    // The wheel alone scrolls the page, unless the plot has focus.
    const chosen = event.ctrlKey || event.metaKey || document.activeElement === panel.over;
    if (!sideways && !chosen) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (sideways) {
      group.pan((event.deltaX * lines) / panel.frame.width);
      return;
    }
    const [x] = place(panel, event);
    group.zoom(Math.exp(event.deltaY * lines * 0.0016), panel.drawn.toX(x));
  }, { passive: false });
}

function addKeys(group, panel) {
  const middle = () => panel.frame.top + panel.frame.height / 2;

  // Moves the cursor to x and keeps it in view.
  const go = (x) => {
    const [from, to] = group.view;
    const [low, high] = group.full;
    const at = Math.max(low, Math.min(x, high));
    if (at < from) group.show(at, at + to - from);
    if (at > to) group.show(at - to + from, at);
    group.cursor = at;
    group.pointer = { panel, y: middle() };
    group.redraw();
    requestAnimationFrame(() => {
      group.live.textContent = panel.spoken(at, null);
    });
  };

  // The next coordinate with a value of this panel in that direction.
  const next = (from, forward) => {
    let best = null;
    for (const series of panel.series) {
      if (!series.shown) continue;
      const index = forward ? series.at(from) + 1 : series.from(from) - 1;
      if (index < 0 || index >= series.n) continue;
      const x = series.x[index];
      if (best === null || (forward ? x < best : x > best)) best = x;
    }
    return best ?? from;
  };

  panel.over.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    const [from, to] = group.view;
    const cursor = group.cursor ?? (from + to) / 2;
    const by = (to - from) / 80;
    const acts = {
      ArrowLeft: () => (event.shiftKey ? group.pan(-0.25) : go(event.altKey ? next(cursor, false) : cursor - by)),
      ArrowRight: () => (event.shiftKey ? group.pan(0.25) : go(event.altKey ? next(cursor, true) : cursor + by)),
      n: () => go(next(cursor, true)),
      p: () => go(next(cursor, false)),
      Home: () => go(group.full[0]),
      End: () => go(group.full[1]),
      "+": () => group.zoom(0.5), "=": () => group.zoom(0.5), "-": () => group.zoom(2),
      0: () => group.reset(),
      Escape: () => group.leave(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
  panel.over.addEventListener("blur", () => group.leave());
}
