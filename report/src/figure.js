// A figure: a chart that follows the width of the page, the table behind it, and both as files.
import * as Plot from "@observablehq/plot";
import { h, saveText, tableOf, toCsv } from "./dom.js";
import { savePng, saveSvg } from "./picture.js";

const figures = new Set();

/**
 * draw(width) gives a chart, or null where there is nothing to draw: then the figure is not shown.
 * table() gives {columns, rows}. note() gives a sentence or two. controls: elements above the chart.
 */
export function figure({ id, title, controls = [], draw, table, note = () => "" }) {
  const chart = h("div", { class: "chart" });
  const caption = h("p", { class: "note" });
  const behind = h("div");
  const details = h("details", { ontoggle: () => fill() }, h("summary", {}, "Table"), behind);
  const save = (kind, action) => h("button", { type: "button", "aria-label": `Download "${title}" as ${kind}`, onclick: action }, kind);
  const node = h("figure", { id },
    h("div", { class: "head" }, h("h3", {}, title), h("div", { class: "controls" }, controls)),
    chart, caption, h("div", { class: "foot" }, details, h("span", { class: "files" },
      save("CSV", () => saveText(`${id}.csv`, toCsv(table()), "text/csv")),
      save("SVG", () => saveSvg(chart, title, id)),
      save("PNG", () => savePng(chart, title, id)))));

  function fill() {
    behind.replaceChildren(...(details.open ? [tableOf(table(), title)] : []));
  }
  let drawn = 0;
  function update() {
    const width = Math.round(node.parentElement ? chart.clientWidth || node.parentElement.clientWidth - 40 : 0);
    if (!width) return;
    drawn = width;
    const picture = draw(width);
    node.hidden = picture === null;
    if (picture === null) return;
    chart.replaceChildren(picture);
    caption.textContent = note();
    fill();
  }
  new ResizeObserver(() => {
    if (chart.clientWidth && Math.abs(chart.clientWidth - drawn) > 1) update();
  }).observe(chart);
  const self = { node, update };
  figures.add(self);
  return self;
}

export function updateFigures() {
  for (const one of figures) one.update();
}

/** Plot with what all charts of the page share. */
export function plot(width, label, options) {
  const chart = Plot.plot({
    width,
    marginLeft: 52,
    marginRight: 16,
    marginBottom: 42,
    style: { fontSize: "12px", overflow: "visible" },
    ariaLabel: label,
    ...options,
  });
  chart.setAttribute("role", "img");
  nameless(chart);
  chart.addEventListener("input", () => nameless(chart));  // hovering draws a part anew
  return chart;
}

/** A chart below the key of its colours; the click that chooses a datum is that of the chart. */
export function withKey(chart, label, options = {}) {
  const key = Plot.legend({ color: chart.scale("color"), label, width: 260, tickSize: 4, ticks: 5, style: { fontSize: "11px" }, ...options });
  key.setAttribute("role", "img");
  key.setAttribute("aria-label", `Colours: ${label}`);
  nameless(key);
  return h("div", {}, h("div", { class: "key" }, key), chart);
}

/** The parts of a chart have names too, which groups may not: the chart's own name and the table are for those who listen. */
function nameless(chart) {
  for (const part of chart.querySelectorAll("g[aria-label]")) {
    part.dataset.mark = part.getAttribute("aria-label");
    part.removeAttribute("aria-label");
  }
}
