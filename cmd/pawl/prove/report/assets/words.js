// The texts for claims, faults, marks and violations: a heading and the rows of a table.
const since = (t, from) => (t ? `${moment(t)} (${length(t - from)} later)` : "never");
const texts = data.texts;

const endings = ["no lease", "released", "lost", "its process died", "unknown", "unknown: perhaps it was granted"];

const claimInWords = (i) => {
  const c = claims, at = (key) => c[key][i];
  const rows = [];
  const say = (what, words, kind) => { if (words) rows.push([what, words, kind]); };
  const pid = pidOf(i), life = at("life");
  say("Worker", `${at("worker")}, process ${pid ?? "?"}${life > 1 ? `, life ${life}` : ""}, client ${at("client")}`);
  say("Asked for", texts[at("mode")] + (at("weight") > 1 ? `, ${at("weight")} permits` : "") + ` (${texts[at("how")]})`);
  if (at("group")) say("Together with", `the group of claim ${at("group")}`);
  say("Asked", moment(at("asked")));
  if (at("got")) {
    say("Got", since(at("got"), at("asked")));
    say("Fence", fenceOf(i) || "none");
    say("Sure until", `${moment(at("sure"))} (held ${length(at("sure") - at("got"))})`);
    if (at("lost")) say("Saw its loss", since(at("lost"), at("sure")), "lost");
    if (at("woken")) say("Woken up: lost", since(at("woken"), at("sure")), "lost");
    if (c.end[i] === LOST && at("last") > at("known")) say("Worked on", `for ${length(at("last") - at("known"))} after that`, "lost");
    if (at("released")) say("Released", moment(at("released")) + (at("freed") ? `, answered ${length(at("freed") - at("released"))} later: ${texts[at("release")]}` : ", no answer"));
  } else {
    say("Answered", at("answered") ? since(at("answered"), at("asked")) : "never");
    say("Answer", texts[at("answer")]);
  }
  if (at("died")) say("Process ended", moment(at("died")), "lost");
  say("Why", texts[at("why")]);
  say("Error", texts[at("problem")]);
  if (at("writes")) say("Writes", String(at("writes")));
  say("End", endings[c.end[i]], c.end[i] > RELEASED ? "lost" : "");
  return { heading: `Claim ${at("id")} of “${data.names[at("name")].name}”`, rows };
};

const faultInWords = (f) => ({
  heading: `Fault: ${f.kind}`,
  rows: [
    ["On", f.worker < 0 ? "the server" : `worker ${f.worker}`],
    ["From", moment(f.from)],
    ["To", since(f.to, f.from)],
    ["Did", f.hit ? `${f.hit} time${f.hit === 1 ? "" : "s"}` : "nothing"],
  ],
});

const markInWords = (m) => ({
  heading: m.kind ? "Update lost" : "Late write refused",
  rows: [
    ["At", moment(m.at)],
    ["By", `claim ${claims.id[m.claim]}${fenceOf(m.claim) ? `, fence ${fenceOf(m.claim)}` : ""}`],
    ["That is", m.kind ? "the register that checks no fences accepted a write that another write should have preceded" : "the register had seen a greater fence"],
  ],
});

const violationInWords = (v) => ({
  heading: `Violation ${v.number} of ${violations.length}: ${v.rule}`,
  rows: [["From", moment(v.from)], ["To", v.to > v.from ? since(v.to, v.from) : ""]].filter((r) => r[1]),
});

// captionOf returns one line about the chosen element.
const captionOf = ({ claim, fault, mark, violation }) => {
  if (violation) return `Violation ${violation.number}: ${violation.text}`;
  if (fault) return `${fault.kind} of ${fault.worker < 0 ? "the server" : `worker ${fault.worker}`} for ${length(fault.to - fault.from)}`;
  const i = mark ? mark.claim : claim;
  if (i < 0) return "";
  const held = claims.got[i] ? `, surely held for ${length(claims.sure[i] - claims.got[i])}` : "";
  return `${mark ? markInWords(mark).heading : "Chosen"}: claim ${claims.id[i]}, worker ${claims.worker[i]}${held}; ${endings[claims.end[i]]}`;
};

// element makes an element with text, or with children.
const element = (tag, content, kind) => {
  const e = document.createElement(tag);
  if (kind) e.className = kind;
  if (typeof content === "string") e.textContent = content; else e.append(...content);
  return e;
};

const described = ({ heading, rows }) => [
  element("h3", heading),
  element("dl", rows.map(([what, words, kind]) => element("div", [element("dt", what), element("dd", [element("bdi", words)], kind)]))),
];
