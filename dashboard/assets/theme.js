// Before anything is drawn: the theme that was chosen here, if any was.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  try {
    const chosen = localStorage.getItem("pawl-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch { /* no storage: the system's theme */ }
})();
