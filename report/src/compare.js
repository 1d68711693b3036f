// Two results beside each other: what became smaller, what larger.
import * as Plot from "@observablehq/plot";
import { curvesOf, settingTitle } from "./data.js";
import { choice, count, h, interval, key, number } from "./dom.js";
import { figure, plot } from "./figure.js";
import { closing, opening, provenance } from "./frame.js";

const COLOURS = ["var(--alone)", "var(--method-1)"];  // of the first and the second

/** {"run.steps": 60, …}: a nested spec as flat keys. */
function flatten(value, path = "", out = {}) {
  if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) flatten(inner, path ? `${path}.${key}` : key, out);
  } else {
    out[path] = value;
  }
  return out;
}

function differences([before, after]) {
  const [a, b] = [before, after].map((r) => flatten({ ...r.manifest.spec, seed: r.manifest.seed, version: r.manifest.version }));
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => a[key] !== b[key]);
  if (!keys.length) return h("p", { class: "card" }, "Both were made with the same settings.");
  const text = (value) => (value === undefined ? "–" : String(value));
  return h("div", { class: "card" }, h("h3", {}, "What differs between them"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences of the settings" }, h("table", {},
      h("thead", {}, h("tr", {}, ["key", "first", "second"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, keys.map((key) => h("tr", {}, [key, text(a[key]), text(b[key])].map((t) => h("td", {}, t))))))));
}

function ratioFigure([before], pairs) {
  const several = new Set(pairs.map((p) => p.before)).size > 1;
  const name = (p) => (several ? `${p.method}, ${settingTitle(before.settings[p.before])}` : p.method);
  const data = pairs.map((p) => ({ ...p, ...p.ratio, name: name(p), outcome: p.ratio.hi < 1 ? "smaller" : p.ratio.lo > 1 ? "larger" : "even" }));
  return figure({
    id: "ratios",
    title: "Error of the second over error of the first",
    draw: (width) => {
      const left = Math.min(width * 0.45, 20 + 6.6 * Math.max(...data.map((p) => [...p.name].length)));
      const fits = Math.floor(left / 6.6) - 2;
      const ends = data.flatMap((p) => [p.mean, p.lo, p.hi].filter((v) => Number.isFinite(v) && v > 0));
      const clip = (v) => Math.max(v, Math.min(...ends));
      return plot(width, "Ratios of errors, with 90 % intervals", {
        height: 60 + 20 * data.length, marginLeft: left,
        x: { type: "log", label: "second / first", grid: true, nice: true, ticks: 6, tickFormat: (v) => number(v, 3), domain: [Math.min(0.95, ...ends), Math.max(1.05, ...ends)] },
        y: { label: null, domain: data.map((p) => p.name), tickSize: 0, tickFormat: (t) => ([...t].length > fits ? `${[...t].slice(0, fits - 1).join("")}…` : t) },
        color: { domain: ["smaller", "even", "larger"], range: ["var(--gained)", "var(--even)", "var(--lost)"] },
        marks: [
          Plot.ruleX([1], { stroke: "currentColor" }),
          Plot.ruleY(data.filter((p) => Number.isFinite(p.lo) && p.lo !== null), { x1: (p) => clip(p.lo), x2: (p) => clip(p.hi), y: "name", stroke: "outcome", strokeWidth: 2 }),
          Plot.dot(data, { x: "mean", y: "name", fill: "outcome", r: 4 }),
          Plot.tip(data, Plot.pointer({ x: "mean", y: "name", title: (p) => `${p.name}\n${number(p.mean)} ${interval(p.lo, p.hi)}\n${p.paired ? `paired, ${count(p.replicates, "replicate")}` : "not paired"}` })),
        ],
      });
    },
    table: () => ({ columns: ["what", "second_over_first", "lo", "hi", "replicates", "paired"], rows: data.map((p) => [p.name, p.mean, p.lo, p.hi, p.replicates, p.paired ? "yes" : "no"]) }),
    note: () => (data.every((p) => p.paired)
      ? "The seeds agree, so replicates are paired: both results drew the same random numbers, and intervals are of the paired ratio."
      : "Not paired (the seeds differ, or one replicate alone is in both): the intervals treat the two as strangers."),
  });
}

function curvesFigure(results, pairs) {
  const view = { pair: 0 };
  const [before, after] = results;
  const names = ["first", "second"];
  const points = () => {
    const p = pairs[view.pair];
    return [[before, p.before], [after, p.after]].flatMap(([result, s], which) =>
      curvesOf(result, result.settings[s]).filter((c) => c.method === p.method && c.agent === "all").map((c) => ({ ...c, which: names[which] })));
  };
  const label = (p) => [p.method, settingTitle(before.settings[p.before])].filter(Boolean).join(", ");
  const self = figure({
    id: "curves",
    title: "Error while learning",
    controls: [choice("Of", pairs.map((p, i) => [i, label(p)]), 0, (i) => { view.pair = Number(i); self.update(); }), names.map((name, i) => key(name, COLOURS[i]))],
    draw: (width) => {
      const data = points().filter((p) => p.mean > 0);
      if (!data.length) return h("p", { class: "note" }, "No curve is known.");
      const floor = Math.min(...data.map((p) => p.mean)) / 3;
      return plot(width, "Error against steps in both results", {
        height: 340,
        x: { label: "steps" },
        y: { type: "log", label: "mean squared error", grid: true, ticks: 6, tickFormat: (v) => number(v, 2) },
        color: { domain: names, range: COLOURS },
        marks: [
          Plot.areaY(data.filter((p) => Number.isFinite(p.lo)), { x: "step", y1: (p) => Math.max(floor, p.lo), y2: "hi", fill: "which", fillOpacity: 0.16 }),
          Plot.lineY(data, { x: "step", y: "mean", stroke: "which", strokeWidth: 1.8 }),
          Plot.tip(data, Plot.pointer({ x: "step", y: "mean", stroke: "which", title: (p) => `${p.which}\nstep ${p.step}\n${number(p.mean)}` })),
        ],
      });
    },
    table: () => ({ columns: ["result", "method", "step", "mse_mean", "mse_lo", "mse_hi"], rows: points().map((p) => [p.which, p.method, p.step, p.mean, p.lo, p.hi]) }),
    note: () => `First: ${before.folder}. Second: ${after.folder}. Bands are 90 %.`,
  });
  return self;
}

function fitsFigure({ pairs, all }) {
  return figure({
    id: "agents",
    title: "Each agent in both fits",
    draw: (width) => {
      const ends = pairs.flatMap((p) => [p.before, p.after]);
      const domain = [Math.min(...ends), Math.max(...ends)];
      return plot(width, "Error of each agent in the second fit against the first", {
        height: Math.min(420, width), grid: true,
        x: { label: "error in the first", domain, nice: true }, y: { label: "error in the second", domain, nice: true },
        marks: [
          Plot.line(domain.map((v) => [v, v]), { stroke: "currentColor", strokeOpacity: 0.5 }),
          Plot.dot(pairs, { x: "before", y: "after", fill: (p) => (p.after < p.before ? "var(--gained)" : "var(--lost)"), r: 4 }),
          Plot.tip(pairs, Plot.pointer({ x: "before", y: "after", title: (p) => `${p.agent}\nfirst ${number(p.before)}\nsecond ${number(p.after)}` })),
        ],
      });
    },
    table: () => ({ columns: ["agent", "rows", "first", "second"], rows: pairs.map((p) => [p.agent, p.rows, p.before, p.after]) }),
    note: () => "On rows not yet learnt from. Below the line: better in the second. The interval of the ratio above is over agents, each weighted by its rows." +
      (all > pairs.length ? ` ${pairs.length.toLocaleString("en")} of ${all.toLocaleString("en")} agents are shown.` : ""),
  });
}

export function comparisonPage(results, comparison) {
  const fits = results[0].kind === "fit";
  const figures = fits ? [fitsFigure(comparison)] : [ratioFigure(results, comparison.pairs), curvesFigure(results, comparison.pairs)];
  return [
    opening({ eyebrow: "affpcl · two results", title: `${results[0].folder} and ${results[1].folder}`, headline: `${comparison.headline}.` }),
    h("section", {}, h("h2", {}, "Side by side"), figures.map((f) => f.node), differences(results)),
    provenance(results[0], "The first result"), provenance(results[1], "The second result"), closing(),
  ];
}
