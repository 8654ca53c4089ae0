// The claim or fault below the pointer, and the one chosen by a click, a key or a link.
const pointer = { at: null, y: 0, claim: -1, range: null };
const chosen = { claim: -1, fault: null, mark: null, violation: null };
let focus = new Set(), focusName = -1; // the claims of the chosen violation

const chooseNothing = () => {
  Object.assign(chosen, { claim: -1, fault: null, mark: null, violation: null });
  focus = new Set();
  focusName = -1;
};

// find returns the element drawn at a place: { claim }, { fault }, { mark } or { violation }.
const find = (px, py) => {
  if (px < size.gutter) return {};
  if (py < size.head) return findInHead(px, py);
  const y = py - size.head + scroller.scrollTop;
  const b = bands.find((b) => y >= b.top && y < b.top + b.height);
  if (!b) return {};
  for (const m of marksOf.get(b.name) ?? []) {
    const top = Math.abs(x(m.at) - px) <= 5 ? markTop(b, m) : null;
    if (top !== null && Math.abs(top - y) <= 5) return { mark: m };
  }
  const k = Math.floor((y - b.top - 6) / b.pitch);
  return b.rows[k] ? { claim: findInRow(b.rows[k], px) } : {};
};

const findInHead = (px, py) => {
  for (const v of violations) if (py < AXIS && Math.abs(x((v.from + v.to) / 2) - px) <= 6) return { violation: v };
  const worker = lanes[Math.floor((py - laneTop(0)) / size.lane)];
  const under = (perLane.get(worker) ?? []).filter((f) => x(f.from) - 3 <= px && x(f.to) + 3 >= px);
  return { fault: under.at(-1) };
};

// findInRow returns the claim at a place of a row. It prefers lost leases.
const findInRow = (r, px) => {
  const from = timeAt(px - 4), to = timeAt(px + 4), t = timeAt(px);
  let best = -1, least = Infinity;
  const last = firstAfter(r.begins, to);
  for (let k = firstAfter(r.ends, from); k < last; k++) {
    const i = r.claims[k];
    const far = Math.max(0, claims.begin[i] - t, t - claims.last[i]) + (odd(i) ? 0 : span());
    if (far < least) { least = far; best = i; }
  }
  return best;
};

const wordsOf = (what) => {
  if (what.mark) return markInWords(what.mark);
  if (what.fault) return faultInWords(what.fault);
  if (what.violation) return { heading: what.violation.rule, rows: [["", what.violation.text]] };
  return what.claim >= 0 ? claimInWords(what.claim) : null;
};

// The tooltip is on the side of the pointer that has room.
const tip = document.getElementById("tip");
const showTip = (what, at) => {
  const words = wordsOf(what);
  tip.hidden = !words;
  if (!words) return;
  tip.replaceChildren(...described(words));
  const { width, height } = tip.getBoundingClientRect(), room = 14;
  const left = at.clientX + room + width > innerWidth ? at.clientX - room - width : at.clientX + room;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(innerHeight - height - 4, at.clientY + room))}px`;
};

// The panel below the timeline shows the chosen claim, fault or violation.
const panel = document.getElementById("chosen");
const caption = document.getElementById("caption");
const showChosen = () => {
  const parts = [];
  caption.textContent = captionOf(chosen);
  caption.classList.toggle("bad", chosen.violation !== null);
  if (chosen.violation) {
    parts.push(...described(violationInWords(chosen.violation)));
    parts.splice(1, 0, element("p", [element("bdi", chosen.violation.text)]));
    const accusedClaims = [...focus].slice(0, 6).map((i) => element("section", described(claimInWords(i))));
    parts.push(element("div", accusedClaims, "beside"));
  } else {
    const words = wordsOf(chosen);
    if (words) parts.push(...described(words));
    if (chosen.mark) parts.push(element("div", [element("section", described(claimInWords(chosen.mark.claim)))], "beside"));
  }
  panel.hidden = parts.length === 0;
  panel.classList.toggle("bad", chosen.violation !== null);
  panel.replaceChildren(...parts);
};

const choose = (what) => {
  chooseNothing();
  if (what.violation) { chooseViolation(what.violation); return; }
  Object.assign(chosen, { claim: what.claim ?? -1, fault: what.fault ?? null, mark: what.mark ?? null });
  showChosen();
  changed();
};

const chooseViolation = (v) => {
  chooseNothing();
  chosen.violation = v;
  focus = new Set(v.claims.map((id) => placeOf.get(id)).filter((i) => i !== undefined));
  focusName = v.name;
  showChosen();
  changed();
};
