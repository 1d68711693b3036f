// A figure: a chart that follows the width of the page, the table behind it, and the table as a CSV file.
import * as Plot from "@observablehq/plot";
import { download, h, tableOf, toCsv } from "./dom.js";

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
  const save = h("button", { type: "button", onclick: () => download(`${id}.csv`, toCsv(table())) }, "CSV");
  save.setAttribute("aria-label", `Download "${title}" as CSV`);
  const node = h("figure", { id },
    h("div", { class: "head" }, h("h3", {}, title), h("div", { class: "controls" }, controls)),
    chart, caption, h("div", { class: "foot" }, details, save));

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

/** The parts of a chart have names too, which groups may not: the chart's own name and the table are for those who listen. */
function nameless(chart) {
  for (const part of chart.querySelectorAll("g[aria-label]")) {
    part.dataset.mark = part.getAttribute("aria-label");
    part.removeAttribute("aria-label");
  }
}
