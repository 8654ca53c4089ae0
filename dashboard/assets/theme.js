// This script sets the theme that the reader has chosen, before the page is drawn.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  try {
    const chosen = localStorage.getItem("pawl-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch { /* no storage: the system's theme */ }
})();
