// The picture of the timeline. Its head has the time axis, the phases and the faults. Below
// it are the bands, which scroll.
const canvas = document.getElementById("canvas"), brush = canvas.getContext("2d");
const scroller = document.getElementById("view");
const size = { width: 0, height: 0, gutter: 0, head: 0, lane: 0 };

const x = (t) => size.gutter + (t - view.from) / span() * (size.width - size.gutter);
const timeAt = (px) => view.from + (px - size.gutter) / (size.width - size.gutter) * span();

// The lanes of faults: one for the server if it has faults, then one for each worker.
const serverFaults = faults.filter((f) => f.worker < 0);
const lanes = [...(serverFaults.length ? [-1] : []), ...Array(data.workers).keys()];
const perLane = new Map(lanes.map((w) => [w, faults.filter((f) => f.worker === w || (w < 0 && f.worker < 0))]));

const AXIS = 22, PHASES = 16, GAPS = 4;
const laneTop = (k) => AXIS + PHASES + GAPS + 3 + k * size.lane;
const family = getComputedStyle(document.body).fontFamily;
const font = (px, weight = 400) => `${weight} ${px}px ${family}`;

// inView calls f for the visible elements of a list, with their left edge and their width,
// which is at least one pixel. The list is in the order of from.
const inView = (list, f) => {
  for (const e of list) {
    if (e.from > view.to) return;
    const a = Math.max(size.gutter - 4, x(e.from)), b = Math.min(size.width + 4, x(Math.max(e.to, e.from)));
    if (b >= a) f(e, a, Math.max(1, b - a));
  }
};

const paint = () => {
  const scale = canvas.width / size.width;
  brush.setTransform(scale, 0, 0, scale, 0, 0);
  brush.fillStyle = colours.sheet;
  brush.fillRect(0, 0, size.width, size.height);
  inside(size.gutter, size.head, () => {
    paintPhases(0, size.height, true);
    brush.globalAlpha = 0.2;
    inView(serverFaults, (f, at, wide) => {
      brush.fillStyle = colours.faults[f.kind];
      brush.fillRect(at, 0, wide, size.height);
    });
    brush.globalAlpha = 1;
    brush.translate(0, size.head - scroller.scrollTop);
    paintBands();
  });
  paintHead();
  paintGutter();
  paintPointer();
};

// inside clips the painting to the area right of and below a point.
const inside = (left, top, f) => {
  brush.save();
  brush.beginPath();
  brush.rect(left, top, size.width - left, size.height - top);
  brush.clip();
  f();
  brush.restore();
};

const paintPhases = (top, height, faint) => {
  inView(data.phases, (p, at, wide) => {
    brush.globalAlpha = faint ? 0.4 : 1;
    brush.fillStyle = colours.phases[p.phase] ?? colours.sheet;
    if (!faint || p.phase !== "faults") brush.fillRect(at, top, wide, height);
    brush.globalAlpha = 1;
    if (!faint) label(p.phase, Math.max(at, size.gutter) + 6, top + height / 2, wide - 10, colours.quiet, font(11));
    if (at > size.gutter) {
      brush.fillStyle = colours.line;
      brush.fillRect(Math.round(at), top, 1, height);
    }
  });
};

// label writes a text if it fits.
const label = (words, at, middle, room, colour, face) => {
  brush.font = face;
  if (brush.measureText(words).width > room) return false;
  brush.fillStyle = colour;
  brush.textBaseline = "middle";
  brush.fillText(words, at, middle + 0.5);
  return true;
};

const paintHead = () => {
  brush.fillStyle = colours.sheet;
  brush.fillRect(0, 0, size.width, size.head);
  inside(size.gutter, 0, () => {
    paintPhases(AXIS, PHASES, false);
    const step = ticks((size.width - size.gutter) / 90);
    brush.font = font(12);
    brush.textBaseline = "middle";
    for (let t = Math.max(0, Math.ceil(view.from / step) * step); t <= Math.min(end, view.to); t += step) {
      brush.fillStyle = colours.quiet;
      brush.fillText(tickText(t, step), x(t) + 4, AXIS / 2);
      brush.fillStyle = colours.line;
      brush.fillRect(Math.round(x(t)), 0, 1, AXIS);
    }
    brush.fillStyle = colours.refused;
    inView(gaps, (g, at, wide) => brush.fillRect(at, AXIS + PHASES, wide, GAPS));
    lanes.forEach((worker, k) => paintLane(worker, laneTop(k)));
    inView(violations, (v, at, wide) => flag(at + wide / 2, AXIS));
  });
  brush.fillStyle = colours.line;
  brush.fillRect(0, size.head - 1, size.width, 1);
};

// flag draws a triangle that points down.
const flag = (at, bottom) => {
  brush.fillStyle = colours.bad;
  brush.beginPath();
  brush.moveTo(at, bottom);
  brush.lineTo(at - 5, bottom - 9);
  brush.lineTo(at + 5, bottom - 9);
  brush.fill();
};

const livesOf = new Map(lanes.map((w) => [w, data.lives.filter((l) => l.worker === w).sort((a, b) => a.from - b.from)]));
const paintLane = (worker, top) => {
  const tall = Math.max(2, size.lane - 2);
  brush.fillStyle = colours.line;
  inView(livesOf.get(worker), (l, at, wide) => brush.fillRect(at, top + tall / 2 - 0.5, wide, 1));
  inView(perLane.get(worker), (f, at, wide) => {
    brush.globalAlpha = f.hit ? 1 : 0.4;
    brush.fillStyle = colours.faults[f.kind];
    brush.fillRect(at, top, Math.max(2, wide), tall);
    brush.globalAlpha = 1;
    const left = Math.max(at, size.gutter);
    if (size.lane >= 12) label(f.kind, left + 4, top + tall / 2, at + wide - left - 8, colours.sheet, font(10));
  });
};

const paintGutter = () => {
  brush.fillStyle = colours.sheet;
  brush.fillRect(0, 0, size.gutter, size.height);
  const narrow = size.gutter < 100;
  lanes.forEach((worker, k) => {
    if (size.lane < 12 && k % Math.ceil(12 / size.lane)) return;
    const words = worker < 0 ? "server" : narrow ? `w${worker}` : `worker ${worker}`;
    label(words, 8, laneTop(k) + size.lane / 2 - 1, size.gutter, colours.quiet, font(11));
  });
  brush.save();
  brush.beginPath();
  brush.rect(0, size.head, size.gutter, size.height);
  brush.clip();
  brush.translate(0, size.head - scroller.scrollTop);
  for (const b of bands) {
    const { name, kind, limit } = data.names[b.name];
    brush.fillStyle = colours.line;
    brush.fillRect(0, b.top + b.height - 1, size.gutter, 1);
    brush.font = font(13, 600);
    label(shortened(name, size.gutter - 14), 8, b.top + 14, size.gutter, colours.ink, font(13, 600));
    label(kind + (limit > 1 ? ` of ${limit}` : ""), 8, b.top + 29, size.gutter - 10, colours.quiet, font(11));
    if (b.waits && b.chart) label("waiting", 8, b.top + b.height - 12, b.height > 50 && !narrow ? 200 : 0, colours.quiet, font(11));
    if (!narrow && b.pitch >= 9) {
      b.rows.forEach((r, k) => {
        if (r.worker < 0 || r.worker === b.rows[k - 1]?.worker) return;
        brush.font = font(10);
        const wide = brush.measureText(`w${r.worker}`).width;
        label(`w${r.worker}`, size.gutter - 6 - wide, rowTop(b, k) + b.pitch / 2, 40, colours.quiet, font(10));
      });
    }
  }
  brush.restore();
  brush.fillStyle = colours.line;
  brush.fillRect(size.gutter - 1, 0, 1, size.height);
};

// shortened shortens a text to a width.
const shortened = (s, room) => {
  if (brush.measureText(s).width <= room) return s;
  const all = [...s];
  while (all.length && brush.measureText(all.join("") + "…").width > room) all.pop();
  return all.join("") + "…";
};

// paintPointer shows the time at the pointer, or the period that a drag chooses.
const paintPointer = () => {
  if (pointer.range) {
    const [a, b] = pointer.range;
    brush.globalAlpha = 0.2;
    brush.fillStyle = colours.ink;
    brush.fillRect(x(Math.min(a, b)), 0, Math.abs(x(b) - x(a)), size.height);
    brush.globalAlpha = 1;
    return;
  }
  if (pointer.at === null || pointer.at < size.gutter) return;
  brush.fillStyle = colours.quiet;
  brush.globalAlpha = 0.5;
  brush.fillRect(Math.round(pointer.at), AXIS, 1, size.height);
  brush.globalAlpha = 1;
  const words = moment(timeAt(pointer.at), Math.max(1, Math.min(6, Math.ceil(-Math.log10(span() / 1e12)))));
  brush.font = font(12, 600);
  const wide = brush.measureText(words).width + 10;
  const left = Math.min(size.width - wide, Math.max(size.gutter, pointer.at - wide / 2));
  brush.fillStyle = colours.ink;
  brush.fillRect(left, 1, wide, AXIS - 3);
  label(words, left + 5, AXIS / 2, wide, colours.sheet, font(12, 600));
};
