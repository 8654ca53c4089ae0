// The mouse, fingers, keys, buttons and filters.
const at = (id) => document.getElementById(id);
const press = (id, f) => at(id)?.addEventListener("click", f);

press("in", () => glide(...zoomed(0.5)));
press("out", () => glide(...zoomed(2)));
press("all", () => glide(0, end));
press("violation-next", () => nextViolation(1));
press("violation-before", () => nextViolation(-1));
press("loss-next", () => nextLoss(1));
press("loss-before", () => nextLoss(-1));
const zoomed = (by) => {
  const middle = (view.from + view.to) / 2, half = span() * by / 2;
  return [middle - half, middle + half];
};

// The filters.
const option = (value, words) => {
  const o = element("option", words);
  o.value = value;
  return o;
};
data.names.forEach((n, i) => at("name").append(option(i, n.name)));
for (let w = 0; w < data.workers; w++) at("worker").append(option(w, String(w)));
const showFilter = () => {
  at("name").value = filter.name;
  at("worker").value = filter.worker;
  at("losses").checked = filter.losses;
  at("rows").checked = filter.perWorker;
};
for (const id of ["name", "worker", "losses", "rows"]) {
  at(id).addEventListener("change", () => {
    Object.assign(filter, { name: Number(at("name").value), worker: Number(at("worker").value), losses: at("losses").checked, perWorker: at("rows").checked });
    arrange();
  });
}

// The wheel zooms if the timeline has the focus. Otherwise it scrolls the page.
canvas.addEventListener("wheel", (e) => {
  const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
  const meant = e.ctrlKey || e.metaKey || document.activeElement === canvas;
  if (!meant && !(sideways && e.deltaX)) return;
  e.preventDefault();
  cancelAnimationFrame(gliding);
  const unit = e.deltaMode === 1 ? 20 : 1;
  if (sideways && !e.ctrlKey) {
    const by = (e.deltaX || e.deltaY) * unit / size.width * span();
    setView(view.from + by, view.to + by);
  } else {
    zoomAt(timeAt(e.offsetX), Math.exp(Math.max(-120, Math.min(120, e.deltaY * unit)) / 300));
  }
}, { passive: false });

// One pointer drags, or chooses a period with Shift. Two pointers zoom.
const down = new Map();
let dragged = false, pinch = 0;
const distance = () => { const [a, b] = [...down.values()]; return Math.max(10, Math.abs(a.x - b.x)); };
const placeIn = (e) => ({ x: e.offsetX, y: e.offsetY });
canvas.addEventListener("pointerdown", (e) => {
  cancelAnimationFrame(gliding);
  canvas.setPointerCapture(e.pointerId);
  down.set(e.pointerId, placeIn(e));
  dragged = false;
  if (down.size === 2) pinch = distance();
  if (e.shiftKey) pointer.range = [timeAt(e.offsetX), timeAt(e.offsetX)];
});
canvas.addEventListener("pointermove", (e) => {
  const before = down.get(e.pointerId);
  pointer.at = e.offsetX;
  if (!before) { hover(e); return; }
  if (!dragged && Math.hypot(e.offsetX - before.x, e.offsetY - before.y) < 4) return;
  dragged = true;
  tip.hidden = true;
  down.set(e.pointerId, placeIn(e));
  if (down.size === 2) {
    const now = distance();
    zoomAt(timeAt(([...down.values()].reduce((s, p) => s + p.x, 0)) / 2), pinch / now);
    pinch = now;
  } else if (pointer.range) {
    pointer.range[1] = timeAt(e.offsetX);
  } else {
    const by = (before.x - e.offsetX) / (size.width - size.gutter) * span();
    setView(view.from + by, view.to + by);
    if (e.pointerType === "mouse") scroller.scrollTop += before.y - e.offsetY;
  }
  changed();
});
const released = (e) => {
  if (!down.delete(e.pointerId)) return;
  if (pointer.range) {
    const [a, b] = [Math.min(...pointer.range), Math.max(...pointer.range)];
    pointer.range = null;
    if (dragged) glide(a, b);
  } else if (!dragged && e.type === "pointerup") {
    choose(find(e.offsetX, e.offsetY));
  }
  if (e.pointerType !== "mouse") pointer.at = null;
  changed();
};
canvas.addEventListener("pointerup", released);
canvas.addEventListener("pointercancel", released);
canvas.addEventListener("dblclick", (e) => { const t = timeAt(e.offsetX); glide(t - span() / 8, t + span() / 8); });
canvas.addEventListener("pointerleave", () => {
  if (down.size) return;
  Object.assign(pointer, { at: null, claim: -1 });
  tip.hidden = true;
  changed();
});
const hover = (e) => {
  const what = find(e.offsetX, e.offsetY);
  pointer.claim = what.claim ?? -1;
  canvas.style.cursor = wordsOf(what) ? "pointer" : "grab";
  if (e.pointerType === "mouse") showTip(what, e);
  changed();
};

// A drag in the chart of the whole run chooses a part; a click moves the view there.
let chosenFrom = null;
overview.addEventListener("pointerdown", (e) => {
  overview.setPointerCapture(e.pointerId);
  chosenFrom = e.offsetX;
});
overview.addEventListener("pointermove", (e) => {
  if (chosenFrom === null || Math.abs(e.offsetX - chosenFrom) < 4) return;
  const [a, b] = [smallTime(Math.min(chosenFrom, e.offsetX)), smallTime(Math.max(chosenFrom, e.offsetX))];
  setView(Math.max(0, a), Math.min(end, b));
});
overview.addEventListener("pointerup", (e) => {
  if (chosenFrom !== null && Math.abs(e.offsetX - chosenFrom) < 4) {
    const t = smallTime(e.offsetX);
    glide(t - span() / 2, t + span() / 2);
  }
  chosenFrom = null;
});

const keys = {
  "+": () => glide(...zoomed(0.5)), "=": () => glide(...zoomed(0.5)), "-": () => glide(...zoomed(2)),
  ArrowLeft: () => setView(view.from - span() / 10, view.to - span() / 10),
  ArrowRight: () => setView(view.from + span() / 10, view.to + span() / 10),
  ArrowUp: () => { scroller.scrollTop -= 40; }, ArrowDown: () => { scroller.scrollTop += 40; },
  0: () => glide(0, end), Home: () => glide(0, span()), End: () => glide(end - span(), end),
  v: () => nextViolation(1), V: () => nextViolation(-1), l: () => nextLoss(1), L: () => nextLoss(-1),
  ".": () => nextClaim(1), ",": () => nextClaim(-1), Escape: () => choose({}),
};
canvas.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(keys, e.key)) return;
  e.preventDefault();
  keys[e.key]();
});
scroller.addEventListener("scroll", () => changed());
addEventListener("hashchange", followLink);
// A click on a link whose target is already in the address causes no hashchange event.
addEventListener("click", (e) => { if (e.target.closest?.("a.jump")?.hash === location.hash) followLink(); });
