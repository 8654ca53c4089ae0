// changed redraws the picture, at most once a frame.
let due = 0;
const changed = () => { due ||= requestAnimationFrame(draw); };

const windowWords = document.getElementById("window");
const draw = () => {
  due = 0;
  if (!size.width) return;
  paint();
  paintOverview();
  const words = `${moment(Math.max(0, view.from), digitsFor())} to ${moment(Math.min(end, view.to), digitsFor())}, ${length(Math.min(end, view.to) - Math.max(0, view.from))}`;
  if (windowWords.textContent !== words) windowWords.textContent = words;
};
const digitsFor = () => Math.max(1, Math.min(6, Math.ceil(-Math.log10(span() / 1e12))));

// arrange lays the rows out, and fits the canvas to the page.
const arrange = () => {
  layOut();
  fit();
  pointer.claim = -1;
  changed();
};

const room = document.getElementById("room");
const fit = () => {
  size.width = scroller.clientWidth;
  if (!size.width) return;
  const narrow = size.width < 640, many = lanes.length;
  size.gutter = narrow ? 76 : 132;
  size.lane = Math.min(narrow ? 9 : 13, 240 / many);
  size.head = AXIS + PHASES + GAPS + 6 + many * size.lane;
  const whole = size.head + Math.max(depth, 40);
  // The picture may be a little too high for the window, so that it need not scroll.
  const most = Math.max(340, innerHeight * 0.8);
  size.height = whole < most + 160 ? whole : most;
  scroller.style.height = `${size.height}px`;
  room.style.height = `${whole}px`;
  for (const [c, height] of [[canvas, size.height], [overview, SMALLHEIGHT]]) {
    const scale = Math.min(2, devicePixelRatio || 1);
    c.style.height = `${height}px`;
    c.style.width = `${size.width}px`;
    c.width = Math.round(size.width * scale);
    c.height = Math.round(height * scale);
  }
};

for (const v of violations) for (const id of v.claims) if (placeOf.has(id)) accused.add(placeOf.get(id));
at("timeline").hidden = false;
at("unscripted").hidden = true;
showFilter();
readColours();
arrange();
dark.addEventListener("change", () => { readColours(); changed(); });
new ResizeObserver(() => { fit(); draw(); }).observe(scroller);
followLink();
draw();
document.documentElement.dataset.ready = "yes";
