"use strict";
// Tables that can be sorted and filtered, and that fit the page; links that open their target.
// Without this script all rows are shown in their first order.
(() => {
  const text = new Intl.Collator("en", { numeric: true });

  // Cells without a value come last in either order.
  function compare(a, b, down) {
    if (a.key === undefined && b.key === undefined) return (down ? -1 : 1) * text.compare(a.text, b.text);
    if (a.key === undefined || b.key === undefined) return a.key === undefined ? 1 : -1;
    return down ? b.key - a.key : a.key - b.key;
  }

  // The tables for paper follow the order of the table on the screen.
  function sortable(table) {
    const bodies = [table, ...table.closest("section").querySelectorAll(".sheet > table")].map((t) => t.tBodies[0]);
    const rows = bodies.map((b) => Array.from(b.rows));
    const first = rows[0];
    const arrange = (order) => {
      bodies.forEach((b, i) => b.append(...order.map((n) => rows[i][n])));
      table.dispatchEvent(new Event("sorted"));
    };
    const heads = Array.from(table.tHead.rows[0].cells);
    const keys = (column) => first.map((row, number) => {
      const cell = row.cells[column];
      const key = cell.dataset.key;
      return { number, text: cell.firstElementChild.textContent, key: key === undefined ? undefined : Number(key) };
    });
    // Names start at A, figures with the greatest. The third click restores the first order.
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

  // A long table has a search box. A folded one shows its first rows until the reader asks for
  // all or searches. Both apply to the screen only.
  const manyRows = 12;
  function filterable(table) {
    const rows = Array.from(table.tBodies[0].rows);
    const shown = Number(table.dataset.shown ?? rows.length);
    if (rows.length < manyRows && shown >= rows.length) return;
    const box = document.createElement("input");
    const count = document.createElement("span");
    const unfold = document.createElement("button");
    const bar = document.createElement("div");
    let all = shown >= rows.length;
    box.type = "search";
    box.placeholder = "Filter rows";
    box.setAttribute("aria-label", "Filter rows of " + table.parentElement.getAttribute("aria-label"));
    count.setAttribute("role", "status");
    unfold.type = "button";
    bar.className = "filter";
    bar.append(box, count);
    table.parentElement.before(bar);
    if (!all) table.parentElement.after(unfold);
    unfold.className = "unfold";

    function apply() {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let matches = 0;
      for (const row of table.tBodies[0].rows) {
        const cells = row.textContent.toLowerCase();
        const match = words.every((w) => cells.includes(w));
        if (match) matches++;
        row.hidden = !match || (!all && words.length === 0 && matches > shown);
      }
      count.textContent = words.length === 0 ? "" : `${matches} of ${rows.length} rows`;
      unfold.hidden = words.length > 0;
      unfold.textContent = all ? "Show fewer rows" : `Show all ${rows.length} rows`;
      unfold.setAttribute("aria-expanded", String(all));
    }
    box.addEventListener("input", apply);
    unfold.addEventListener("click", () => { all = !all; apply(); });
    table.addEventListener("sorted", apply);
    apply();
  }

  // A table that is too wide gets smaller type, and then a card for each row.
  function fit(scroll) {
    scroll.classList.remove("tight", "cards");
    for (const step of ["tight", "cards"]) {
      if (scroll.scrollWidth <= scroll.clientWidth) return;
      scroll.classList.add(step);
    }
  }
  const scrolls = document.querySelectorAll(".scroll");
  document.querySelectorAll(".scroll > table").forEach(sortable);
  document.querySelectorAll(".scroll > table").forEach(filterable);
  const fitAll = () => scrolls.forEach(fit);
  fitAll();
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== wide) fitAll();
    wide = innerWidth;
  });

  // The element that the address names, if it is in this page.
  function target() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null; // malformed escape
    }
  }

  // Opens the episode or the folded section that the address names.
  function open() {
    const named = target();
    const closed = named?.classList.contains("episode") ? named : named?.querySelector(":scope > .fold");
    if (!closed) return;
    closed.open = true;
    named.scrollIntoView();
    closed.querySelector("summary").focus({ preventScroll: true });
  }
  addEventListener("hashchange", open);
  document.querySelectorAll(".fold").forEach((f) => f.addEventListener("toggle", fitAll));
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#episode-"], a[href^="#section-"], a[href="#facts"]');
    if (link && link.hash === location.hash) open(); // there is no hashchange
  });
  open();
  // Drawing the charts moves everything below them, and not every browser scrolls along.
  addEventListener("drawn", () => target()?.scrollIntoView());

  // The contents mark the section that is being read.
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
