// A reader sees an error of the script, not an empty place.
addEventListener("error", (e) => {
  const notice = document.getElementById("unscripted");
  notice.textContent = `The timeline failed: ${e.message}. Everything else is below.`;
  notice.classList.add("bad");
  notice.hidden = false;
});

// The data of the report. A claim is a number, its place in the columns. All times are in
// nanoseconds from the begin of the run, and 0 is never.
const data = JSON.parse(document.getElementById("data").textContent);

// column returns all numbers of a column. The data has it as a list, as one number if all
// are the same, or as the numbers that are not 0 with their places.
const column = (c, n, Kind = Float64Array) => {
  const all = new Kind(n);
  if (typeof c === "number") return all.fill(c);
  if (Array.isArray(c)) { all.set(c); return all; }
  let at = 0;
  c.at.forEach((step, i) => { at += step; all[at] = c.is[i]; });
  return all;
};

const claims = (() => {
  const c = data.claims, n = c.n, all = { n, fence: c.fence };
  for (const key of ["id", "asked"]) {
    const list = all[key] = column(c[key], n);
    for (let i = 1; i < n; i++) list[i] += list[i - 1];
  }
  // Later times come as the time since asked, plus 1.
  for (const key of ["answered", "got", "believed", "lost", "told", "released", "freed", "died", "used"]) {
    const list = all[key] = column(c[key], n);
    for (let i = 0; i < n; i++) if (list[i] !== 0) list[i] += all.asked[i] - (list[i] > 0 ? 1 : 0);
  }
  for (const key of ["mode", "how", "answer", "problem", "why", "release", "worker", "life", "client", "name", "weight", "writes"]) {
    all[key] = column(c[key], n, Int32Array);
  }
  all.group = column(c.group, n);
  all.end = column(c.end, n, Uint8Array);
  return all;
})();

// How a claim ended, as in story.go.
const NONE = 0, RELEASED = 1, LOST = 2, DIED = 3, UNKNOWN = 4, ASKING = 5;

// The parts of a bar: the holder was sure until sure, did not know of its loss until
// known, and worked on after its loss until last.
{
  const n = claims.n;
  claims.begin = claims.got.map((got, i) => got || claims.asked[i]);
  claims.sure = new Float64Array(n);
  claims.known = new Float64Array(n);
  claims.last = new Float64Array(n);
  const first = (...times) => Math.min(...times.map((t) => t || Infinity));
  for (let i = 0; i < n; i++) {
    const got = claims.got[i], end = claims.end[i];
    if (!got) {
      claims.last[i] = Math.max(claims.asked[i], claims.answered[i], claims.died[i]);
      continue;
    }
    const sure = end === RELEASED ? claims.released[i] : Math.max(got, claims.believed[i]);
    let known = sure;
    if (end === LOST) known = Math.max(sure, first(claims.lost[i], claims.told[i], claims.freed[i]));
    if (end === DIED) known = Math.max(sure, claims.died[i]);
    if (end === UNKNOWN) known = Math.max(sure, claims.released[i], claims.freed[i]);
    claims.sure[i] = sure;
    claims.known[i] = known;
    claims.last[i] = end === LOST ? Math.max(known, claims.released[i], claims.used[i]) : known;
  }
}

const placeOf = new Map();
claims.id.forEach((id, i) => placeOf.set(id, i));

const faults = data.faults;
const marks = data.marks.map(([kind, at, claim, name]) => ({ kind, at, claim: placeOf.get(claim) ?? -1, name }))
  .filter((m) => m.claim >= 0);
const violations = data.violations.map((v, k) => ({ ...v, number: k + 1 })).sort((a, b) => a.from - b.from);
const end = Math.max(1, data.end);

// fenceOf returns a fence as text: it may have more digits than a number of a script.
const fenceOf = (i) => {
  const f = claims.fence[i];
  return f === 0 ? "" : String(BigInt(data.names[claims.name[i]].base) + BigInt(f) - 1n);
};

// pidOf returns the process of a claim.
const processes = new Map(data.lives.map((l) => [`${l.worker} ${l.life}`, l]));
const pidOf = (i) => processes.get(`${claims.worker[i]} ${claims.life[i]}`)?.pid;
