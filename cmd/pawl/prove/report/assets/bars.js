// The bars of the claims. If bars are narrower than a pixel, the shade of a pixel shows for
// which share of its time the name was held.
const SMALL = 3, LEVELS = 5;
const shade = new Float32Array(16384);

const rowTop = (b, k) => b.top + 6 + k * b.pitch;

// Each layer collects rectangles, which fillAll draws together.
const layers = ["waits", "nothing", "unsure", "died", "unknown", "lost", "late"];
const rectangles = Object.fromEntries(layers.map((l) => [l, []]));
const shades = Array.from({ length: LEVELS }, () => []);
const wide = [];

const paintBands = () => {
  const top = scroller.scrollTop, bottom = top + size.height - size.head;
  for (const b of bands) {
    if (b.top > bottom || b.top + b.height < top) continue;
    brush.fillStyle = colours.line;
    brush.fillRect(size.gutter, b.top + b.height - 1, size.width, 1);
    const dim = focus.size > 0 && focusName === b.name;
    if (filter.perWorker) paintTints(b);
    paintGaps(b);
    paintViolations(b);
    b.rows.forEach((r, k) => collect(r, rowTop(b, k), b.pitch - 3));
    brush.globalAlpha = dim ? 0.3 : 1;
    fill(dim ? 0.3 : 1);
    brush.globalAlpha = 1;
    if (b.waits) paintWaits(b);
    paintMarks(b);
  }
  paintChosen();
};

// collect adds the bars of a row to the layers.
const collect = (r, y, tall) => {
  const scale = (size.width - size.gutter) / span(), from = view.from, gutter = size.gutter, right = size.width;
  const last = firstAfter(r.begins, view.to);
  let low = Infinity, high = -1, waited = -Infinity;
  const put = (layer, t0, t1, top, height, least) => {
    if (t1 <= t0 && !least) return;
    const a = Math.max(gutter - 4, gutter + (t0 - from) * scale), b = Math.min(right + 4, gutter + (t1 - from) * scale);
    if (b >= a) rectangles[layer].push(a, top, Math.max(least, b - a), height);
  };
  for (let k = firstAfter(r.ends, from); k < last; k++) {
    const i = r.claims[k], how = claims.end[i], got = claims.got[i];
    if (filter.perWorker || how === ASKING || how === NONE) {
      // Lines that touch are drawn as one.
      const until = gutter + ((got || claims.last[i]) - from) * scale;
      if (until > waited + 0.5) {
        put(how === ASKING || how === NONE ? "nothing" : "waits", claims.asked[i], got || claims.last[i], y + tall / 2 - 1, 2, 1);
        waited = until;
      }
      if (!got) continue;
    }
    const a = gutter + (got - from) * scale, b = gutter + (claims.sure[i] - from) * scale;
    if (how === RELEASED) {
      if (b - a >= SMALL) { wide.push(i, Math.max(gutter - 4, a), y, Math.min(right + 4, b) - Math.max(gutter - 4, a), tall); continue; }
      for (let px = Math.max(0, Math.floor(a)); px <= Math.min(right, b); px++) {
        if (px < low) low = px;
        if (px > high) high = px;
        shade[px] += Math.max(0.08, Math.min(b, px + 1) - Math.max(a, px));
      }
      continue;
    }
    put(how === LOST ? "lost" : how === DIED ? "died" : "unknown", got, claims.sure[i], y, tall, 2);
    if (claims.known[i] > claims.sure[i]) put("unsure", claims.sure[i], claims.known[i], y + 1, tall - 2, 1);
    if (claims.last[i] > claims.known[i]) put("late", claims.known[i], claims.last[i], y, tall, 2);
  }
  for (let px = low; px <= high; px++) {
    const level = levelOf(shade[px]);
    let to = px;
    while (to < high && levelOf(shade[to + 1]) === level) to++;
    if (level >= 0) shades[level].push(px, y, to + 1 - px, tall);
    px = to;
  }
  if (high >= 0) shade.fill(0, low, high + 1);
};

const levelOf = (share) => (share === 0 ? -1 : Math.min(LEVELS - 1, Math.floor(share * LEVELS)));

const fill = (alpha) => {
  fillLayers(layers.slice(0, 2));
  brush.fillStyle = colours.released;
  shades.forEach((list, level) => {
    brush.globalAlpha = alpha * (0.36 + 0.64 * level / (LEVELS - 1));
    fillAll(list);
  });
  brush.globalAlpha = alpha;
  for (let k = 0; k < wide.length; k += 5) block(wide[k + 1], wide[k + 2], wide[k + 3], wide[k + 4]);
  for (let k = 0; k < wide.length; k += 5) fenceIn(wide[k], wide[k + 1], wide[k + 2], wide[k + 3], wide[k + 4]);
  wide.length = 0;
  fillLayers(layers.slice(2));
};

const fillLayers = (list) => {
  for (const layer of list) {
    brush.fillStyle = { waits: colours.wait, nothing: colours.refused }[layer] ?? colours[layer];
    fillAll(rectangles[layer]);
  }
};

const fillAll = (list) => {
  for (let k = 0; k < list.length; k += 4) brush.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
  list.length = 0;
};

const block = (at, y, w, tall) => {
  if (w < 8) { brush.fillRect(at, y, w, tall); return; }
  brush.beginPath();
  brush.roundRect(at, y, w, tall, Math.min(3, tall / 3));
  brush.fill();
};

// fenceIn writes the worker and the fence into a bar if they fit.
const fenceIn = (i, at, y, w, tall) => {
  if (w < 24 || tall < 13) return;
  const fence = fenceOf(i), worker = `w${claims.worker[i]}`, left = Math.max(at, size.gutter), room = Math.min(size.width, at + w) - left - 8;
  if (room < 12) return;
  const colour = brush.fillStyle;
  for (const s of fence ? [`worker ${claims.worker[i]}, fence ${fence}`, `${worker} ${fence}`, worker] : [worker]) if (label(s, left + 4, y + tall / 2, room, colours.sheet, font(11))) break;
  brush.fillStyle = colour;
};

// paintTints shows the faults of a worker in its rows.
const paintTints = (b) => {
  brush.globalAlpha = 0.22;
  b.rows.forEach((r, k) => inView(perLane.get(r.worker) ?? [], (f, at, w) => {
    brush.fillStyle = colours.faults[f.kind];
    brush.fillRect(at, rowTop(b, k) - 1, w, b.pitch);
  }));
  brush.globalAlpha = 1;
};

// paintGaps shows, where claims are omitted, for which share of the time a name was held.
const gaps = data.gaps.map(([from, to]) => ({ from, to }));
const paintGaps = (b) => {
  const shares = data.shares[b.name];
  if (!shares || filter.perWorker || filter.losses || filter.worker >= 0) return;
  const part = Math.floor(end / shares.length) + 1;
  brush.fillStyle = colours.released;
  inView(gaps, (g) => {
    const last = Math.min(shares.length - 1, Math.floor(Math.min(g.to, view.to) / part));
    for (let k = Math.max(0, Math.floor(Math.max(g.from, view.from) / part)); k <= last; k++) {
      const a = Math.max(size.gutter, x(Math.max(g.from, k * part))), w = x(Math.min(g.to, (k + 1) * part)) - a;
      if (!shares[k] || w <= 0) continue;
      brush.globalAlpha = 0.1 + 0.5 * shares[k] / 100;
      brush.fillRect(a, rowTop(b, 0) + 3, w, b.pitch - 9);
    }
  });
  brush.globalAlpha = 1;
};

const paintViolations = (b) => inView(violations, (v, at, w) => {
  if (v.name >= 0 && v.name !== b.name) return;
  brush.fillStyle = colours.bad;
  brush.globalAlpha = v === chosen.violation ? 0.3 : chosen.violation ? 0.1 : 0.2;
  brush.fillRect(at - 1, b.top, w + 2, b.height - 1);
  brush.globalAlpha = 1;
});

// paintWaits draws a chart of the number of waiting claims at the bottom of the band. Each
// pixel shows the greatest number in its time.
const paintWaits = (b) => {
  const { times, counts, most } = b.waits, bottom = b.top + b.height - 4, tall = b.chart - 4;
  brush.fillStyle = colours.wait;
  let k = firstAfter(times, view.from);
  for (let px = size.gutter; px < size.width; px++) {
    const to = timeAt(px + 1);
    let n = k > 0 ? counts[k - 1] : 0;
    for (; k < times.length && times[k] <= to; k++) n = Math.max(n, counts[k]);
    if (n > 0) brush.fillRect(px, bottom - Math.max(1.5, tall * n / most), 1, Math.max(1.5, tall * n / most));
    if (k >= times.length && n === 0) break;
  }
};

// paintMarks draws refused writes and lost updates.
const paintMarks = (b) => {
  const R = 4;
  for (const m of marksOf.get(b.name) ?? []) {
    if (m.at < view.from || m.at > view.to) continue;
    const at = x(m.at), y = markTop(b, m);
    if (y === null) continue;
    brush.fillStyle = m.kind ? colours.plain : colours.stale;
    brush.beginPath();
    brush.moveTo(at, y - R);
    brush.lineTo(at + R, y);
    brush.lineTo(at, y + R);
    brush.lineTo(at - R, y);
    brush.fill();
    brush.strokeStyle = colours.sheet;
    brush.lineWidth = 1;
    brush.stroke();
  }
};

const marksOf = new Map(data.names.map((_, name) => [name, marks.filter((m) => m.name === name)]));

// markTop returns the place of a mark in the row of its claim, or null if that is not
// drawn. A write with both marks has two places.
const markTop = (b, m) => {
  const k = rowOf(b, m.claim);
  return k < 0 ? null : rowTop(b, k) + (b.pitch - 3) / 2 + (m.kind ? 3 : -3);
};

// rowOf returns the row of a claim in its band, or -1.
const rowOf = (b, i) => {
  if (!b.where) {
    b.where = new Map();
    b.rows.forEach((r, k) => r.claims.forEach((c) => b.where.set(c, k)));
  }
  return b.where.get(i) ?? -1;
};

// paintChosen draws frames around the chosen claims and the claim below the pointer, and
// draws their waits.
const paintChosen = () => {
  for (const i of new Set([...focus, chosen.claim, pointer.claim])) {
    const b = i >= 0 && bands.find((b) => b.name === claims.name[i]);
    const k = b ? rowOf(b, i) : -1;
    if (k < 0) continue;
    const y = rowTop(b, k), tall = b.pitch - 3, guilty = focus.has(i);
    const a = Math.max(size.gutter - 9, x(claims.begin[i])), e = Math.min(size.width + 9, x(claims.last[i]));
    if (claims.got[i]) {
      brush.fillStyle = colours.wait;
      brush.fillRect(Math.max(size.gutter - 9, x(claims.asked[i])), y + tall - 2, Math.max(0, a - Math.max(size.gutter - 9, x(claims.asked[i]))), 3);
    }
    if (guilty) paintGuilty(i, a, y, e - a, tall);
    brush.strokeStyle = guilty ? colours.bad : colours.ink;
    brush.lineWidth = 2;
    brush.strokeRect(a - 1, y - 1, Math.max(2, e - a) + 2, tall + 2);
  }
};

// paintGuilty draws a claim of the chosen violation over the other claims.
const paintGuilty = (i, a, y, w, tall) => {
  const sure = Math.min(size.width + 9, Math.max(a, x(claims.sure[i])));
  brush.fillStyle = [colours.refused, colours.released, colours.lost, colours.died, colours.unknown, colours.refused][claims.end[i]];
  brush.fillRect(a, y, Math.max(2, sure - a), tall);
  if (claims.end[i] === RELEASED) fenceIn(i, a, y, sure - a, tall);
};
