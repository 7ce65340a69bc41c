"use strict";
// Charts take colours and fonts from the page's style. They are drawn again when the colours or
// the width change, and once more in the colours of paper, for printing.
(() => {
  const paperWidth = 690; // pixels between the margins of A4
  const figures = Array.from(document.querySelectorAll("figure"));
  const composed = ["facet", "concat", "hconcat", "vconcat", "repeat"];

  // A chart with a height for each row only fits the width. That warning is noise.
  const logger = vega.logger(vega.Warn);
  const warn = logger.warn;
  logger.warn = (...words) => (/Dropping "fit-/.test(words[0]) ? logger : warn.apply(logger, words));

  // The width of the longest name in the legend, in pixels.
  function legendLabel(spec) {
    const fields = (part) => [part.encoding?.color?.field, part.encoding?.opacity?.field, ...[part.layer, part.spec].flat().filter(Boolean).flatMap(fields)];
    const names = fields(spec).filter(Boolean).flatMap((f) => (spec.data?.values ?? []).map((v) => String(v[f])));
    return 7 * names.reduce((longest, n) => Math.max(longest, n.length), 10);
  }

  function config(element, spec, width, tilted) {
    const style = getComputedStyle(element);
    const get = (name) => style.getPropertyValue(name).trim();
    const colours = (name) => get(name).split(/\s+/);
    const [ink, muted, line, grid, surface] = ["--ink", "--muted", "--line", "--grid", "--surface"].map(get);
    const series = colours("--series");
    const limit = Math.max(90, Math.round(width * 0.3));
    const label = Math.min(legendLabel(spec), width - 40);
    const fits = Math.floor(limit / 8), end = Math.floor(fits / 2); // letters of a name beside a chart
    return {
      background: surface, font: get("--sans"), padding: 2,
      view: { stroke: null },
      title: { color: ink, fontSize: 14, fontWeight: 600, anchor: "start", subtitleColor: muted },
      axis: {
        labelColor: muted, titleColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, labelLimit: limit,
        domainColor: line, tickColor: line, gridColor: grid, labelPadding: 6, titlePadding: 10, tickSize: 4,
      },
      axisQuantitative: { domain: false, ticks: false, tickCount: width < 480 ? 4 : 6 },
      axisBand: { grid: false, ticks: false },
      axisXQuantitative: { labelFlush: false },
      axisXDiscrete: tilted ? { labelAngle: -45, labelOverlap: false }
        : { labelAngle: 0, labelOverlap: true, labelExpr: "split(datum.label, ' ')" },
      // Names that are too long lose their middle, because what differs is at their ends.
      axisYDiscrete: {
        labelExpr: `length(datum.label) > ${fits} ? slice(datum.label, 0, ${fits - end - 1}) + "…" + slice(datum.label, -${end}) : datum.label`,
      },
      header: { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 },
      legend: {
        orient: "top", direction: "horizontal", columns: Math.max(1, Math.floor((width - 20) / (label + 25))), offset: 14,
        labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, labelLimit: label,
        symbolType: "circle", symbolSize: 90, symbolOpacity: 1, gradientLength: Math.min(220, width * 0.5), gradientThickness: 10,
      },
      range: {
        category: series, ordinal: colours("--ramp"), ramp: colours("--ramp"), heatmap: colours("--ramp"),
        diverging: colours("--diverging"),
      },
      mark: { color: get("--mark") },
      bar: { cornerRadiusEnd: 1 },
      line: { strokeWidth: 2 },
      point: { filled: true, size: 60, opacity: 0.9 },
      circle: { size: 60 },
      rule: { color: muted },
      text: { color: ink, fontSize: 12 },
      errorbar: { rule: { color: ink }, ticks: { color: ink, size: 9 } },
      errorband: { opacity: 0.18 },
    };
  }

  // Facets get as many columns as fit. Other views side by side have their own widths, and scroll.
  function fitted(spec, width) {
    const { usermeta, ...own } = spec;
    if (own.facet && own.columns && own.spec.width) {
      const room = width - 70; // beside the axis
      const columns = Math.max(1, Math.min(own.columns, Math.floor(room / 190)));
      return { ...own, columns, spec: { ...own.spec, width: Math.floor(room / columns) - 20 } };
    }
    const facets = own.encoding && (own.encoding.row || own.encoding.column || own.encoding.facet);
    if (composed.some((k) => k in own) || facets) return own;
    return { ...own, width, autosize: { type: "fit-x", contains: "padding" } };
  }

  const hidden = 'g[aria-label^="X-axis"][aria-label*="discrete scale"] .role-axis-label text[opacity="0"]';

  // Names below a chart are upright, with one word a line, or tilted if they do not fit.
  async function draw(element, spec, width, options, tilted = false) {
    const previous = element.drawn;
    const result = await vegaEmbed(element, fitted(spec, width), {
      mode: "vega-lite", renderer: "svg", ast: true, logger, tooltip: { disableDefaultStyle: true }, defaultStyle: false,
      config: config(element, spec, width, tilted), ...options,
    });
    if (previous) previous.finalize();
    element.drawn = result;
    if (!tilted && element.querySelector(hidden)) return draw(element, spec, width, options, true);
    // The library only sets a link when the mouse goes down. Keyboards need it on focus.
    element.querySelectorAll(".vega-actions a").forEach((a) => a.addEventListener("focus", async () => {
      a.href = await result.view.toImageURL(a.download.split(".").pop(), 2);
    }));
  }

  async function show(figure, forPaper) {
    const [screen, paper] = [".chart", ".paper"].map((c) => figure.querySelector(c));
    try {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      const name = figure.closest("section").id.replace(/^section-/, "") || "chart";
      const room = screen.clientWidth; // 0 while the page is printed
      if (room > 0) await draw(screen, spec, room, {
        actions: { export: true, source: false, compiled: false, editor: false }, downloadFileName: name, scaleFactor: 2,
        i18n: { SVG_ACTION: "Save as SVG", PNG_ACTION: "Save as PNG" },
      });
      if (forPaper) await draw(paper, spec, paperWidth, { actions: false, tooltip: false });
    } catch (error) {
      console.error(error);
      screen.textContent = "This chart could not be drawn: " + error.message;
      screen.classList.add("chart-failed");
    }
  }

  // Drawings of a chart wait for each other.
  const queue = new Map();
  function draws(figure, forPaper) {
    const done = Promise.resolve(queue.get(figure)).then(() => show(figure, forPaper));
    queue.set(figure, done);
    return done;
  }

  let width = document.documentElement.clientWidth;
  let waiting;
  const again = () => figures.forEach((f) => draws(f, false));
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(again, 150);
  });
  document.querySelectorAll(".fold").forEach((f) => f.addEventListener("toggle", () => {
    if (f.open) f.querySelectorAll("figure").forEach((each) => draws(each, false));
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  Promise.all(figures.map((f) => draws(f, true))).then(() => dispatchEvent(new Event("drawn")));
})();
