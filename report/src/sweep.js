// All settings at once: a line for one swept key, a heat-map with contours for two.
import * as Plot from "@observablehq/plot";
import { RATIO } from "./colours.js";
import { axisTitle, dimensions, meanings, settingTitle, valueText } from "./data.js";
import { choice, h, interval, number } from "./dom.js";
import { figure, plot, withKey } from "./figure.js";
import { methodToggles } from "./toggles.js";

export function sweepFigure(result, state) {
  const { settings } = result;
  const dims = dimensions(settings);
  if (!dims.length) return null;
  const names = [...new Set(settings.flatMap((s) => s.methods.map((m) => m.name)))];
  const alone = settings.some((s) => s.methods.some((m) => m.vs_independent));
  // Contours over the number of agents are of the error itself, as in the paper's figure.
  const view = { quantity: alone && !dims.some((d) => d.raw === "problem.agents") ? "vs_independent" : "mse", method: settings[0].headline?.method ?? names[0] };
  const [x, y] = [...dims].sort((a, b) => b.values.length - a.values.length);
  const flat = Boolean(y && y.values.length > 1);

  const cells = () => settings.flatMap((s, index) => s.methods.map((m) => {
    const e = m[view.quantity];
    return { index, setting: s, method: m.name, kind: m.kind, value: e?.mean ?? NaN, lo: e?.lo ?? NaN, hi: e?.hi ?? NaN };
  })).filter((c) => Number.isFinite(c.value));
  const label = () => (view.quantity === "mse" ? "mean squared error" : "error / error of independent learning");
  const title = (d, room) => axisTitle(d.keys, result.labels, room);

  const controls = [];
  if (alone) controls.push(choice("Show", [["vs_independent", "error vs independent"], ["mse", "error"]], view.quantity, (q) => { view.quantity = q; self.update(); }));
  if (flat) controls.push(choice("Method", names.map((n) => [n, n]), view.method, (m) => { view.method = m; self.update(); }));

  const toggles = methodToggles(state);
  if (!flat) controls.push(toggles.node);

  const self = figure({
    id: "sweep",
    title: flat ? `Error against ${x.name} and ${y.name}` : `Error against ${x.name}`,
    controls,
    draw: (width) => (flat ? heatmap(width) : lines(width)),
    table: () => ({
      columns: [...Object.keys(settings[0].at), "method", view.quantity === "mse" ? "error" : "against_alone", "lo", "hi"],
      rows: cells().map((c) => [...Object.values(c.setting.at).map(valueText), c.method, c.value, c.lo, c.hi]),
    }),
    note: () => (flat ? `${view.method}. Click a cell to look at its setting. ${contours() ? "Lines of equal value are drawn between the cells' centres." : ""} ${rest()}` : "Click a point to look at its setting.") + explained(),
  });

  function explained() {
    const words = meanings(flat ? [...x.keys, ...y.keys] : x.keys, result.labels);
    return words ? ` ${words}.` : "";
  }
  /** Swept keys that the two axes do not show stay as in the chosen setting. */
  function others() { return dims.filter((d) => d !== x && d !== y); }
  function rest() {
    return others().map((d) => `${d.name} = ${valueText(d.of(settings[state.setting]))}`).join(", ");
  }
  /** Data with its edges repeated all around: contours then close outside of the frame, where they are clipped. */
  function padded(data) {
    const at = new Map(data.map((c) => [`${c.i},${c.j}`, c.value]));
    const [across, up] = [x.values.length, y.values.length];
    const inside = (k, n) => Math.min(n - 1, Math.max(0, k));
    return Array.from({ length: (across + 2) * (up + 2) }, (_, k) => [(k % (across + 2)) - 1, Math.floor(k / (across + 2)) - 1])
      .map(([i, j]) => ({ i, j, value: at.get(`${inside(i, across)},${inside(j, up)}`) })).filter((c) => c.value !== undefined);
  }
  function contours() { return x.values.length > 3 && y.values.length > 3; }

  function lines(width) {
    toggles.sync(names);
    const numeric = x.values.every((v) => typeof v === "number");
    const data = cells().filter((c) => !state.hidden.has(c.method)).map((c) => ({ ...c, at: numeric ? x.of(c.setting) : valueText(x.of(c.setting)) }));
    if (!data.length) return h("p", { class: "note" }, "All methods are switched off, or none has an error.");
    const log = data.every((c) => c.value > 0);
    const floor = Math.min(...data.map((c) => c.value)) / 3;
    const clip = (v) => (log ? Math.max(v, floor) : v);
    return clickable(plot(width, `${label()} of each method along ${x.name}`, {
      height: Math.min(400, Math.max(260, width * 0.4)),
      x: { label: title(x, width), type: numeric ? undefined : "point", domain: numeric ? undefined : x.values.map(valueText) },
      y: { label: label(), type: log ? "log" : "linear", grid: true, tickFormat: (v) => number(v, 2), ticks: 6 },
      color: { domain: [...state.colours.keys()], range: [...state.colours.values()], legend: false },
      marks: [
        view.quantity === "mse" ? null : Plot.ruleY([1], { stroke: "currentColor", strokeOpacity: 0.5 }),
        Plot.areaY(data.filter((c) => Number.isFinite(c.lo)), { x: "at", y1: (c) => clip(c.lo), y2: (c) => clip(c.hi), fill: "method", fillOpacity: 0.14 }),
        Plot.lineY(data, { x: "at", y: "value", stroke: "method", strokeWidth: 1.8 }),
        Plot.dot(data, { x: "at", y: "value", fill: "method", r: 3 }),
        Plot.tip(data, Plot.pointer({ x: "at", y: "value", stroke: "method", title: (c) => `${c.method}\n${settingTitle(c.setting)}\n${number(c.value)} ${interval(c.lo, c.hi)}` })),
      ],
    }));
  }

  function heatmap(width) {
    const here = settings[state.setting];
    const fixed = others();
    const same = (s) => fixed.every((d) => JSON.stringify(d.of(s)) === JSON.stringify(d.of(here)));
    const place = (dimension, s) => dimension.values.findIndex((v) => JSON.stringify(v) === JSON.stringify(dimension.of(s)));
    const data = cells().filter((c) => c.method === view.method && same(c.setting))
      .map((c) => ({ ...c, i: place(x, c.setting), j: place(y, c.setting) }));
    if (!data.length) return h("p", { class: "note" }, "Nothing is known of this method here.");
    const ticks = (d, room) => d.values.map((_, i) => i).filter((i) => i % Math.ceil((d.values.length * 44) / room) === 0);
    const text = (d) => (i) => (typeof d.values[i] === "number" ? number(d.values[i], 3) : valueText(d.values[i]));
    const left = Math.min(140, 26 + 7 * Math.max(...y.values.map((_, i) => text(y)(i).length)));
    const roomy = (width - left) / x.values.length > 46;
    const height = Math.min(560, Math.max(180, 60 + y.values.length * Math.min(44, (width - left) / x.values.length)));
    const ratio = view.quantity !== "mse";
    const values = data.map((c) => c.value);
    const span = Math.max(1.05, ...values.flatMap((v) => [v, 1 / v]).filter(Number.isFinite));
    const thresholds = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 5, 10];
    const chart = clickable(plot(width, `${label()} of ${view.method} along ${x.name} and ${y.name}`, {
      height, marginLeft: left, marginBottom: 38, marginTop: 24,
      x: { label: title(x, width), ticks: ticks(x, width - left), tickFormat: text(x), tickSize: 0, domain: [-0.5, x.values.length - 0.5] },
      y: { label: title(y, width), ticks: ticks(y, 10 * height), tickFormat: text(y), tickSize: 0, domain: [-0.5, y.values.length - 0.5] },
      color: ratio ? { ...RATIO, domain: [1 / span, span] } : { type: "log", scheme: "YlGnBu", reverse: true },
      marks: [
        Plot.rect(data, { x1: (c) => c.i - 0.5, x2: (c) => c.i + 0.5, y1: (c) => c.j - 0.5, y2: (c) => c.j + 0.5, fill: "value", inset: 0.5 }),
        contours() ? Plot.contour(padded(data), { x: "i", y: "j", value: "value", stroke: "#222", strokeOpacity: 0.65, strokeWidth: (v) => (v.value === 1 ? 2.5 : 1), interpolate: "barycentric", clip: true, thresholds: ratio ? thresholds : 6 }) : null,
        roomy ? Plot.text(data, { x: "i", y: "j", text: (c) => number(c.value, 2), fill: (c) => (dark(c.value, ratio, span, values) ? "white" : "#111") }) : null,
        Plot.rect(data.filter((c) => c.index === state.setting), { x1: (c) => c.i - 0.5, x2: (c) => c.i + 0.5, y1: (c) => c.j - 0.5, y2: (c) => c.j + 0.5, fill: "none", stroke: "currentColor", strokeWidth: 2.5 }),
        Plot.tip(data, Plot.pointer({ x: "i", y: "j", title: (c) => `${c.method}\n${settingTitle(c.setting)}\n${number(c.value)} ${interval(c.lo, c.hi)}` })),
      ],
    }));
    return withKey(chart, label(), { tickFormat: (v) => number(v, 2), ...(ratio ? { ticks: steps(span) } : {}) });
  }

  /** The chart's own pointer knows which datum is nearest; a click chooses its setting. */
  function clickable(chart) {
    chart.addEventListener("click", () => {
      if (chart.value && chart.value.index !== undefined) state.show(chart.value.index);
    });
    return chart;
  }
  return self;
}

/** Ticks of a ratio's colours, the closer the narrower its range. */
function steps(span) {
  const all = span > 12 ? [0.01, 0.1, 1, 10, 100] : span > 2.5 ? [0.1, 0.2, 0.5, 1, 2, 5, 10] : [0.4, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 2.5];
  return all.filter((v) => v >= 1 / span && v <= span);
}

/** Whether white text is easier to read than black on a cell. */
function dark(value, ratio, span, values) {
  const part = ratio ? Math.abs(Math.log(value)) / Math.log(span)
    : 1 - (Math.log(value) - Math.log(Math.min(...values))) / (Math.log(Math.max(...values)) - Math.log(Math.min(...values)) || 1);
  return part > 0.62;
}
