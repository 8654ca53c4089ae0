// What the page does by itself: times and bars go on, the stream's parts go where they
// belong, and the theme is switched. Nothing here reads the browser's wall clock.
"use strict";
(() => {
  // The server's clock less this page's own, in milliseconds. The first page does not say
  // it, so times stand still until the stream begins.
  let ahead = null;
  const now = () => performance.now() + ahead;

  // The same as brief in words.go.
  const brief = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor(s % 3600 / 60))}m`;
    return `${Math.floor(s / 86400)}d ${Math.floor(s % 86400 / 3600)}h`;
  };

  const tick = () => {
    if (ahead === null) return;
    const t = now();
    for (const e of document.querySelectorAll("[data-since],[data-until]")) {
      const ms = e.dataset.since ? t - Number(e.dataset.since) : Number(e.dataset.until) - t;
      if (e.tagName === "PROGRESS") { e.value = Math.max(0, Math.min(e.max, ms)); continue; }
      const words = ms <= 0 && e.dataset.over ? e.dataset.over : brief(ms);
      if (e.textContent !== words) e.textContent = words;
    }
  };

  // place puts markup into an element. Children with a key that have not changed stay, so
  // that what has the focus keeps it, and what is selected stays selected.
  const sources = new WeakMap();
  const place = (into, markup) => {
    const template = document.createElement("template");
    template.innerHTML = markup;
    const fresh = [...template.content.children];
    const keyed = fresh.length > 0 && fresh.every((e) => e.dataset.key !== undefined);
    const link = document.activeElement?.closest?.("a[href]");
    const focus = link && into.contains(link) ? link.getAttribute("href") : null;
    if (!keyed) {
      into.replaceChildren(...template.content.childNodes);
    } else {
      const old = new Map([...into.children].map((e) => [e.dataset.key, e]));
      const next = fresh.map((e) => {
        const source = e.outerHTML, before = old.get(e.dataset.key);
        if (before && sources.get(before) === source) return before;
        if (!before && old.size > 0) e.classList.add("new");
        sources.set(e, source);
        return e;
      });
      const stays = new Set(next);
      for (const e of [...into.children]) if (!stays.has(e)) e.remove();
      next.forEach((e, i) => { if (into.children[i] !== e) into.insertBefore(e, into.children[i] ?? null); });
    }
    if (focus !== null && !into.contains(document.activeElement)) {
      [...into.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focus)?.focus({ preventScroll: true });
    }
  };

  // What a screen reader is told: only what matters, and only when it is another.
  const said = document.getElementById("said");
  let last = null;
  const say = (words) => {
    if (said && words !== last) { if (last !== null) said.textContent = words; last = words; }
  };

  const link = (words, state) => {
    const e = document.getElementById("link");
    if (e) { e.textContent = words; e.dataset.state = state; }
  };

  const live = document.querySelector("main[data-live]");
  let stream = null, again = 0;
  const close = () => {
    clearTimeout(again);
    stream?.close();
    stream = null;
  };
  const open = () => {
    close();
    stream = new EventSource(live.dataset.live);
    stream.onmessage = (message) => {
      const update = JSON.parse(message.data);
      if (update.stale) link("Not live: the backend does not answer", "down");
      else link("Live", "up");
      ahead = update.now - performance.now();
      for (const [id, markup] of Object.entries(update.parts)) {
        const into = document.getElementById(id);
        if (into) place(into, markup);
      }
      tick();
      const words = document.querySelector("[data-said]");
      if (words) say(words.dataset.said);
    };
    stream.onerror = () => {
      link("Not connected; trying again", "down");
      // A refusal ends the stream for good, unless somebody begins it anew.
      if (stream.readyState === EventSource.CLOSED) again = setTimeout(open, 5000);
    };
  };
  // A page that nobody sees takes no stream from those that somebody does.
  const follow = () => {
    if (document.hidden) { close(); return; }
    if (stream) return;
    link("Connecting", "wait");
    open();
  };
  if (live) {
    const e = document.createElement("span");
    e.id = "link";
    document.querySelector(".how")?.before(e);
    follow();
    setInterval(tick, 250);
    // The browser may keep a page that was left, and show it again as it was.
    addEventListener("pagehide", close);
    addEventListener("pageshow", follow);
    document.addEventListener("visibilitychange", follow);
  }

  // The theme.
  const button = document.getElementById("theme");
  if (button) {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const show = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      const theme = dark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      try { localStorage.setItem("pawl-theme", theme); } catch { /* until the page is left */ }
      show();
    });
    system.addEventListener("change", show);
    button.hidden = false;
    show();
  }
})();
