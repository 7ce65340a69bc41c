"use strict";
// Tables that can be sorted, and links that open what they lead to. Without this
// script everything is there, but in its first order.
(() => {
  const text = new Intl.Collator("en", { numeric: true });

  // What has no value where others have one comes last in either order.
  function compare(a, b, down) {
    if (a.key === undefined && b.key === undefined) return (down ? -1 : 1) * text.compare(a.text, b.text);
    if (a.key === undefined || b.key === undefined) return a.key === undefined ? 1 : -1;
    return down ? b.key - a.key : a.key - b.key;
  }

  // The sheets of paper of a table follow its order.
  function sortable(table) {
    const bodies = [table, ...table.closest("section").querySelectorAll(".sheet > table")].map((t) => t.tBodies[0]);
    const rows = bodies.map((b) => Array.from(b.rows));
    const first = rows[0];
    const arrange = (order) => bodies.forEach((b, i) => b.append(...order.map((n) => rows[i][n])));
    const heads = Array.from(table.tHead.rows[0].cells);
    const keys = (column) => first.map((row, number) => {
      const cell = row.cells[column];
      const key = cell.dataset.key;
      return { number, text: cell.firstElementChild.textContent, key: key === undefined ? undefined : Number(key) };
    });
    // Names begin at A, figures with the greatest; the third time all is as it was.
    const next = (head) => {
      const orders = head.classList.contains("names") ? ["ascending", "descending", "none"] : ["descending", "ascending", "none"];
      return orders[(orders.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.querySelectorAll(".head"));
      head.prepend(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = next(head);
        heads.forEach((h) => h.setAttribute("aria-sort", h === head ? order : "none"));
        if (order === "none") return arrange(Array.from(first.keys()));
        arrange(keys(column).sort((a, b) => compare(a, b, order === "descending")).map((k) => k.number));
      });
    });
  }
  document.querySelectorAll(".scroll > table").forEach(sortable);

  // What the address names, if it is in this page.
  function target() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null; // half of an escape names nothing
    }
  }

  // An episode opens when the address names it.
  function open() {
    const named = target();
    if (!named || !named.classList.contains("episode")) return;
    named.open = true;
    named.scrollIntoView();
    named.querySelector("summary").focus({ preventScroll: true });
  }
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#episode-"]');
    if (link && link.hash === location.hash) open(); // which changes no hash
  });
  open();
  // The charts have moved all that is below them, and not every browser follows.
  addEventListener("drawn", () => target()?.scrollIntoView());

  // The contents show which section is read.
  const links = new Map(Array.from(document.querySelectorAll(".contents a"), (a) => [decodeURIComponent(a.hash.slice(1)), a]));
  const observer = new IntersectionObserver((entries) => {
    for (const e of entries) {
      if (!e.isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(e.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((s) => observer.observe(s));
})();
