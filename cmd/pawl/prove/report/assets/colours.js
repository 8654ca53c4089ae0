// The colours come from the style sheet, which depends on the theme.
const colours = {};
const dark = matchMedia("(prefers-color-scheme: dark)");

const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  for (const name of ["ground", "sheet", "line", "soft", "ink", "quiet", "bad", "wait",
    "released", "lost", "died", "unknown", "unsure", "refused", "stale", "plain"]) {
    colours[name] = of(`--${name}`);
  }
  colours.phases = { calm: of("--calm"), faults: of("--faults"), drain: of("--drain") };
  colours.faults = {};
  for (const kind of new Set(faults.map((f) => f.kind))) colours.faults[kind] = of(`--f-${kind}`) || of("--f-other");
  colours.late = hatch(colours.lost);
};

// hatch returns a pattern of slanted lines.
const hatch = (colour) => {
  const size = 6, tile = new OffscreenCanvas(size, size), pen = tile.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (const by of [-size, 0, size]) {
    pen.moveTo(by - 1, size + 1);
    pen.lineTo(by + size + 1, -1);
  }
  pen.stroke();
  return brush.createPattern(tile, "repeat");
};
