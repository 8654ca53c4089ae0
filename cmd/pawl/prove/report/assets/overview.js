// A small chart of the whole run: the grants over time, the losses, the violations, and the
// part that the timeline below shows.
const overview = document.getElementById("overview"), small = overview.getContext("2d");
const SMALLHEIGHT = 58;

const losses = [];
for (let i = 0; i < claims.n; i++) if (claims.end[i] > RELEASED && claims.end[i] < ASKING) losses.push(i);
const lossAt = (i) => (claims.end[i] === LOST ? claims.known[i] : claims.last[i]);
losses.sort((a, b) => lossAt(a) - lossAt(b));

const smallX = (t) => size.gutter + t / end * (size.width - size.gutter);
const smallTime = (px) => (px - size.gutter) / (size.width - size.gutter) * end;

const paintOverview = () => {
  const scale = overview.width / size.width, base = SMALLHEIGHT - 14;
  small.setTransform(scale, 0, 0, scale, 0, 0);
  small.fillStyle = colours.sheet;
  small.fillRect(0, 0, size.width, SMALLHEIGHT);
  for (const p of data.phases) {
    if (p.phase === "faults" || !colours.phases[p.phase]) continue;
    small.globalAlpha = 0.6;
    small.fillStyle = colours.phases[p.phase];
    small.fillRect(smallX(p.from), 0, smallX(p.to) - smallX(p.from), base);
    small.globalAlpha = 1;
  }
  const most = Math.max(1, ...data.rate), wide = (size.width - size.gutter) / data.rate.length;
  small.fillStyle = colours.released;
  data.rate.forEach((n, k) => {
    if (n) small.fillRect(size.gutter + k * wide, base - Math.max(1, n / most * (base - 6)), wide + 0.5, Math.max(1, n / most * (base - 6)));
  });
  small.fillStyle = colours.line;
  small.fillRect(0, base, size.width, 1);
  small.fillStyle = colours.lost;
  let before = -1;
  for (const i of losses) {
    const at = Math.round(smallX(lossAt(i)));
    if (at !== before) small.fillRect(at, base + 3, 1, 8);
    before = at;
  }
  small.fillStyle = colours.bad;
  for (const v of violations) {
    small.globalAlpha = 0.4;
    small.fillRect(smallX(v.from), 0, Math.max(1, smallX(v.to) - smallX(v.from)), base);
    small.globalAlpha = 1;
    small.beginPath();
    small.moveTo(smallX(v.from), 9);
    small.lineTo(smallX(v.from) - 5, 0);
    small.lineTo(smallX(v.from) + 5, 0);
    small.fill();
  }
  paintWindow(base);
  small.fillStyle = colours.quiet;
  small.font = font(11);
  small.textBaseline = "middle";
  if (size.gutter > 100) {
    small.fillText("leases", 8, base / 2);
    small.fillText("losses", 8, base + 8);
  }
};

// paintWindow draws a frame around the part that the timeline shows.
const paintWindow = (base) => {
  const a = Math.max(size.gutter, smallX(view.from)), b = Math.min(size.width, Math.max(smallX(view.to), smallX(view.from) + 3));
  small.fillStyle = colours.soft;
  small.globalAlpha = 0.66;
  small.fillRect(size.gutter, 0, a - size.gutter, base);
  small.fillRect(b, 0, size.width - b, base);
  small.globalAlpha = 1;
  small.strokeStyle = colours.ink;
  small.lineWidth = 1.5;
  small.strokeRect(a + 0.75, 0.75, b - a - 1.5, base - 0.5);
};
