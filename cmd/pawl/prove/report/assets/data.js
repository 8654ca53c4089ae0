// Shows an error of the script to the reader.
addEventListener("error", (e) => {
  const notice = document.getElementById("unscripted");
  notice.textContent = `The timeline failed: ${e.message}. Everything else is below.`;
  notice.classList.add("bad");
  notice.hidden = false;
});

// The data of the report. A claim is an index into the lists of values. All times are in
// nanoseconds from the begin of the run; 0 means never.
const data = JSON.parse(document.getElementById("data").textContent);
for (const [key, list] of Object.entries(data)) data[key] = list ?? []; // Go writes an empty list as null
const claims = { n: data.claims.length };
data.fields.forEach((key, k) => { claims[key] = data.claims.map((values) => values[k]); });

// The ends of a claim, as in story.go.
const NONE = 0, RELEASED = 1, LOST = 2, DIED = 3, UNKNOWN = 4, ASKING = 5;

// The times of a bar: the holder was sure of its lease until sure, learned of its loss at
// known, and worked until last.
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
    if (end === LOST) known = Math.max(sure, first(claims.lost[i], claims.woken[i], claims.freed[i]));
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
const marks = data.marks.map((m) => ({ ...m, claim: placeOf.get(m.claim) ?? -1 }))
  .filter((m) => m.claim >= 0);
const violations = data.violations.map((v, k) => ({
  ...v, number: k + 1, name: data.names.findIndex((n) => n.name === v.name), claims: v.claims ?? [],
})).sort((a, b) => a.from - b.from);
const end = Math.max(1, data.end);

// fenceOf returns a fence as text, because a number may have too few digits for it.
const fenceOf = (i) => claims.fence[i];

// pidOf returns the ID of the process of a claim.
const processes = new Map(data.lives.map((l) => [`${l.worker} ${l.life}`, l]));
const pidOf = (i) => processes.get(`${claims.worker[i]} ${claims.life[i]}`)?.pid;
