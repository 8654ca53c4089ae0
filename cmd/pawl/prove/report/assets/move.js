// The jumps: to violations, to losses, to the next lease of a row.

// showRow scrolls so that the row of a claim, or the band of a name, is in the view.
const showRow = (name, i) => {
  const b = bands.find((b) => b.name === name);
  if (!b) return;
  const k = i >= 0 ? rowOf(b, i) : -1;
  const top = k >= 0 ? rowTop(b, k) - 30 : b.top, bottom = k >= 0 ? rowTop(b, k) + b.pitch + 30 : b.top + b.height;
  const room = scroller.clientHeight - size.head;
  if (top < scroller.scrollTop || bottom > scroller.scrollTop + room) scroller.scrollTop = (top + bottom - room) / 2;
};

// widen clears the filters that hide the name or any of the claims.
const widen = (name, list) => {
  if (filter.name >= 0 && filter.name !== name) filter.name = -1;
  if (filter.worker >= 0 && list.some((i) => claims.worker[i] !== filter.worker)) filter.worker = -1;
  if (!list.every(odd)) filter.losses = false;
  showFilter();
  arrange();
};

const goToViolation = (v) => {
  const list = v.claims.map((id) => placeOf.get(id)).filter((i) => i !== undefined);
  // Claims that were not granted are only in the rows per worker.
  if (list.some((i) => !claims.got[i])) filter.perWorker = true;
  widen(v.name, list);
  chooseViolation(v);
  // Show the leases of the violation, but not much more time than the violation's.
  const about = Math.max((v.to - v.from) * 8, 5e6);
  const from = Math.max(v.from - about, Math.min(v.from, ...list.map((i) => claims.begin[i])));
  const to = Math.min(v.to + about, Math.max(v.to, ...list.map((i) => claims.last[i])));
  // For a violation without a lease, for example a refusal, show the leases around it.
  const margin = Math.max((to - from) * 0.25, list.some((i) => claims.got[i]) ? 1e5 : 5e7);
  glide(from - margin, to + margin);
  showRow(v.name, list.length ? list[0] : -1);
  document.getElementById("timeline").scrollIntoView({ block: "start", behavior: "instant" });
};

const goToClaim = (i) => {
  widen(claims.name[i], [i]);
  choose({ claim: i });
  const from = claims.begin[i], to = claims.last[i], long = Math.max(1e5, to - from);
  // Keep the zoom if the lease is neither too small nor too large with it.
  const length = long / span() > 0.02 && long / span() < 0.8 ? span() : long * 5;
  glide((from + to) / 2 - length / 2, (from + to) / 2 + length / 2);
  showRow(claims.name[i], i);
};

// beside returns the next element of a sorted list after the current one or, without a
// current one, after the middle of the view. With by -1 it returns the one before.
const beside = (list, at, current, by) => {
  if (!list.length) return undefined;
  const k = list.indexOf(current);
  if (k >= 0) return list[(k + by + list.length) % list.length];
  const middle = view.from <= 0 && view.to >= end ? (by > 0 ? -1 : end + 1) : (view.from + view.to) / 2;
  const next = list.findIndex((e) => at(e) > middle);
  if (by > 0) return list[next < 0 ? 0 : next];
  return list[(next < 0 ? list.length : next || list.length) - 1];
};

const nextViolation = (by) => {
  const v = beside(violations, (v) => v.from, chosen.violation, by);
  if (v) goToViolation(v);
};

const nextLoss = (by) => {
  const shown = losses.filter((i) => (filter.name < 0 || claims.name[i] === filter.name) && (filter.worker < 0 || claims.worker[i] === filter.worker));
  const i = beside(shown, lossAt, chosen.claim, by);
  if (i !== undefined) goToClaim(i);
};

// nextClaim goes to the next claim in the row of the chosen one, or to the first in view.
const nextClaim = (by) => {
  if (chosen.claim < 0 && focus.size) { goToClaim([...focus][0]); return; }
  if (chosen.claim < 0) {
    const all = bands.flatMap((b) => b.rows).flatMap((r) => { const k = firstAfter(r.begins, view.from); return k < r.claims.length ? [r.claims[k]] : []; });
    if (all.length) goToClaim(all[0]);
    return;
  }
  const b = bands.find((b) => b.name === claims.name[chosen.claim]), k = b ? rowOf(b, chosen.claim) : -1;
  if (k < 0) return;
  const list = b.rows[k].claims, i = list[list.indexOf(chosen.claim) + by];
  if (i !== undefined) goToClaim(i);
};

// A link to "#v2" goes to the second violation.
const followLink = () => {
  const v = /^#v(\d+)$/.exec(location.hash) && violations.find((v) => `#v${v.number}` === location.hash);
  if (v) goToViolation(v);
};
