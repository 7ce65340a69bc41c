// Replaces the live content of the page when the server sends a new one, element by element, so that
// focus, selection, open details and scrolling stay as they are.
'use strict';

(() => {
  const page = document.body.dataset.live;
  const area = document.getElementById('live');
  if (!page || !area) return;
  const state = document.getElementById('link');

  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName ||
        (from.id || '') !== (to.id || '')) {
      from.replaceWith(to);
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE) {
      from.nodeValue = to.nodeValue;
      return;
    }
    for (const a of [...from.attributes]) {
      if (!to.hasAttribute(a.name) && !(a.name === 'open' && from.nodeName === 'DETAILS')) {
        from.removeAttribute(a.name);
      }
    }
    for (const a of to.attributes) {
      if (from.getAttribute(a.name) !== a.value) from.setAttribute(a.name, a.value);
    }
    children(from, [...to.childNodes]);
  }

  // Elements with an ID keep their place in the document when others come or go.
  function children(from, wanted) {
    const known = new Map();
    for (const c of from.childNodes) if (c.id) known.set(c.id, c);
    let at = from.firstChild;
    for (const w of wanted) {
      const same = w.id && known.get(w.id);
      if (same && same !== at) from.insertBefore(same, at);
      const target = same || (at && !at.id && !w.id ? at : null);
      if (!target) {
        from.insertBefore(w, at);
        continue;
      }
      at = target.nextSibling;
      morph(target, w);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function show(text, off) {
    if (!state) return;
    state.textContent = text;
    state.classList.toggle('off', off);
  }

  // What the server says about the run stands in the head of the page.
  function tell() {
    const told = document.getElementById('state');
    show(told ? told.textContent : 'live', false);
    state?.classList.toggle('over', Boolean(told && 'over' in told.dataset));
  }

  const source = new EventSource('/events?page=' + encodeURIComponent(page));
  source.onopen = tell;
  source.onerror = () => show('not connected; the page may be old', true);
  source.onmessage = (e) => {
    if (document.hidden) {
      latest = e.data;
      return;
    }
    update(e.data);
  };
  let latest = null;
  function update(html) {
    const next = new DOMParser().parseFromString('<div>' + html + '</div>', 'text/html');
    children(area, [...next.body.firstChild.childNodes].map((n) => document.adoptNode(n)));
    latest = null;
    tell();
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && latest) update(latest);
  });
})();
