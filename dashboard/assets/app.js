// This script counts times and bars on, puts the stream's parts into the page, and
// switches the theme. It never reads the browser's wall clock, which may be wrong.
"use strict";
(() => {
  // clockOffset is how far the server's clock is ahead of performance.now, in
  // milliseconds. Only the stream has it, so times stand still until the stream begins.
  let clockOffset = null;
  const now = () => performance.now() + clockOffset;

  // brief does the same as brief in words.go.
  const brief = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor(s % 3600 / 60))}m`;
    return `${Math.floor(s / 86400)}d ${Math.floor(s % 86400 / 3600)}h`;
  };

  const tick = () => {
    if (clockOffset === null) return;
    const t = now();
    for (const e of document.querySelectorAll("[data-since],[data-until]")) {
      const ms = e.dataset.since ? t - Number(e.dataset.since) : Number(e.dataset.until) - t;
      if (e.tagName === "PROGRESS") { e.value = Math.max(0, Math.min(e.max, ms)); continue; }
      const words = ms <= 0 && e.dataset.over ? e.dataset.over : brief(ms);
      if (e.textContent !== words) e.textContent = words;
    }
  };

  // place puts markup into an element. It keeps unchanged children that have a key, so that
  // they keep the focus and the selection.
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

  // say makes a screen reader read words, if they differ from the last ones.
  const status = document.getElementById("said");
  let last = null;
  const say = (words) => {
    if (status && words !== last) { if (last !== null) status.textContent = words; last = words; }
  };

  const link = (words, state) => {
    const e = document.getElementById("link");
    if (e) { e.textContent = words; e.dataset.state = state; }
  };

  const live = document.querySelector("main[data-live]");
  let stream = null, retryTimer = 0;
  const close = () => {
    clearTimeout(retryTimer);
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
      clockOffset = update.now - performance.now();
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
      // If the server refuses a stream, the browser does not open it again.
      if (stream.readyState === EventSource.CLOSED) retryTimer = setTimeout(open, 5000);
    };
  };
  // connect opens a stream, or closes it while the page is hidden: streams are few.
  const connect = () => {
    if (document.hidden) { close(); return; }
    if (stream) return;
    link("Connecting", "wait");
    open();
  };
  if (live) {
    const e = document.createElement("span");
    e.id = "link";
    document.querySelector(".how")?.before(e);
    connect();
    setInterval(tick, 250);
    // After "back", the browser may show an earlier page without loading it.
    addEventListener("pagehide", close);
    addEventListener("pageshow", connect);
    document.addEventListener("visibilitychange", connect);
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
      try { localStorage.setItem("pawl-theme", theme); } catch { /* no storage: the theme is for this page only */ }
      show();
    });
    system.addEventListener("change", show);
    button.hidden = false;
    show();
  }
})();
