// The timeline has a band for each name. A band has rows in which no two claims overlap.
// Without a row per worker, a band shows only the leases, and a chart of the waits.
const filter = { name: -1, worker: -1, losses: false, perWorker: false };
let bands = [], depth = 0;

// odd reports whether a claim was lost, died, has no known end, or breaks a rule.
const odd = (i) => claims.end[i] > RELEASED || accused.has(i);
const accused = new Set();

// pack puts claims into as few rows as possible. The claims of a row do not overlap, so
// their begins and their ends are both sorted.
const pack = (list, begin) => {
  const rows = [];
  for (const i of list) {
    let row = rows.find((r) => r.end <= begin[i]);
    if (!row) rows.push(row = { claims: [], end: 0 });
    row.claims.push(i);
    row.end = Math.max(claims.last[i], begin[i] + 1);
  }
  return rows;
};

// layOut makes the rows for the filter.
const layOut = () => {
  const perName = data.names.map(() => []);
  for (let i = 0; i < claims.n; i++) {
    if (filter.name >= 0 && claims.name[i] !== filter.name) continue;
    if (filter.worker >= 0 && claims.worker[i] !== filter.worker) continue;
    if (filter.losses && !odd(i)) continue;
    perName[claims.name[i]].push(i);
  }
  bands = [];
  perName.forEach((list, name) => {
    if (filter.name >= 0 && filter.name !== name) return;
    bands.push(filter.perWorker ? bandOfWorkers(name, list) : bandOfLeases(name, list));
  });
  const rows = bands.reduce((n, b) => n + b.rows.length, 0);
  // If there are many rows, for example because of many readers, they are low.
  const pitchOf = (n) => (filter.perWorker ? (rows <= 40 ? 16 : rows <= 80 ? 12 : 9) : (n <= 2 ? 22 : n <= 4 ? 16 : n <= 8 ? 11 : 8));
  depth = 0;
  for (const b of bands) {
    b.top = depth;
    b.pitch = pitchOf(b.rows.length);
    b.chart = b.waits ? 20 : 0;
    b.height = Math.max(38, b.rows.length * b.pitch + b.chart + 12);
    depth += b.height;
  }
};

const bandOfWorkers = (name, list) => {
  const perWorker = new Map();
  for (const i of list) {
    if (!perWorker.has(claims.worker[i])) perWorker.set(claims.worker[i], []);
    perWorker.get(claims.worker[i]).push(i);
  }
  const rows = [];
  for (const worker of [...perWorker.keys()].sort((a, b) => a - b)) {
    for (const r of pack(perWorker.get(worker), claims.asked)) rows.push({ ...row(r.claims, claims.asked), worker });
  }
  return { name, rows, waits: null };
};

const bandOfLeases = (name, list) => {
  // A claim without an answer may hold nothing, so only the chart of the waits shows it.
  const shown = (i) => claims.got[i] > 0 || (filter.losses && odd(i));
  const held = list.filter(shown).sort((a, b) => claims.begin[a] - claims.begin[b]);
  const rows = pack(held, claims.begin).map((r) => ({ ...row(r.claims, claims.begin), worker: -1 }));
  return { name, rows, waits: waitsOf(list) };
};

const row = (list, begin) => ({
  claims: Int32Array.from(list),
  begins: Float64Array.from(list, (i) => begin[i]),
  ends: Float64Array.from(list, (i) => claims.last[i]),
});

// waitsOf returns the number of claims without an answer over time: counts[k] from times[k]
// on.
const waitsOf = (list) => {
  const steps = [];
  for (const i of list) {
    steps.push([claims.asked[i], 1]);
    steps.push([Math.max(claims.asked[i], claims.got[i] || claims.answered[i] || claims.last[i]), -1]);
  }
  steps.sort((a, b) => a[0] - b[0]);
  const times = new Float64Array(steps.length), counts = new Int32Array(steps.length);
  let n = 0, most = 1;
  steps.forEach(([t, by], k) => {
    n += by;
    times[k] = t;
    counts[k] = n;
    most = Math.max(most, n);
  });
  return { times, counts, most };
};

// firstAfter returns the first index of a sorted list whose value is greater than t.
const firstAfter = (list, t) => {
  let a = 0, b = list.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (list[m] > t) b = m; else a = m + 1;
  }
  return a;
};
