// The view is the part of the run that the timeline shows.
const view = { from: 0, to: end };
const span = () => view.to - view.from;
const shortest = 2000; // the deepest zoom, in nanoseconds

// setView shows another part of the run. It keeps the length but moves the part into the run.
const setView = (from, to) => {
  const length = Math.min(end * 1.04, Math.max(shortest, to - from));
  const middle = (from + to) / 2, room = end * 0.02;
  view.from = Math.min(Math.max(middle - length / 2, -room), end + room - length);
  view.to = view.from + length;
  changed();
};

const zoomAt = (t, factor) => setView(t - (t - view.from) * factor, t + (view.to - t) * factor);

// glide moves to another part in an animation.
const still = matchMedia("(prefers-reduced-motion: reduce)");
let gliding = 0;
const glide = (from, to) => {
  cancelAnimationFrame(gliding);
  if (still.matches || document.hidden) { setView(from, to); return; }
  const begun = performance.now(), a = view.from, b = view.to, length = Math.max(1, to - from);
  // Each frame changes the length by about the same factor, so that the zoom looks even.
  const step = (now) => {
    const x = Math.min(1, Math.max(0, (now - begun) / 260)), ease = x * x * (3 - 2 * x);
    if (x === 1) { setView(from, to); return; }
    const size = (b - a) * (length / (b - a)) ** ease;
    const share = Math.abs(length - (b - a)) < 1 ? ease : (size - (b - a)) / (length - (b - a));
    setView(a + (from - a) * share, a + (from - a) * share + size);
    gliding = requestAnimationFrame(step);
  };
  gliding = requestAnimationFrame(step);
};

// The text of times, as in words.go.
const narrow = "\u202f";
const moment = (ns, digits = 6) => {
  const unit = 10 ** (9 - digits), whole = Math.round(ns / unit) * unit;
  const minutes = Math.floor(whole / 6e10), seconds = ((whole - minutes * 6e10) / 1e9).toFixed(digits);
  return (minutes ? `${minutes}${narrow}min ` : "") + seconds + narrow + "s";
};
const length = (ns) => {
  const digits = (x, unit) => (x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2).replace(/\.00$/, "")) + narrow + unit;
  if (ns >= 6e10) return moment(ns, 1);
  if (ns >= 1e9) return digits(ns / 1e9, "s");
  if (ns >= 1e6) return digits(ns / 1e6, "ms");
  if (ns >= 1e3) return digits(ns / 1e3, "µs");
  return `${Math.round(ns)}${narrow}ns`;
};

// ticks returns the step of the axis in nanoseconds. The view has at most that many steps.
const ticks = (most) => {
  const least = span() / most;
  for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400]) if (s * 1e9 >= least && least > 1e9 / 2) return s * 1e9;
  const ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((x) => x * ten >= least) * ten;
};

// tickText returns a time like "3:12.4", with the digits that the step needs.
const tickText = (t, step) => {
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / 1e9) + 1e-9)));
  const unit = 10 ** (9 - digits), whole = Math.round(t / unit) * unit;
  const minutes = Math.floor(whole / 6e10), seconds = ((whole - minutes * 6e10) / 1e9).toFixed(digits);
  return `${minutes}:${seconds.padStart(digits ? digits + 3 : 2, "0")}`;
};
