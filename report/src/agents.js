// What each agent gained: sorted bars with intervals, and the gain against the distance to the centre.
import * as Plot from "@observablehq/plot";
import { OUTCOMES } from "./colours.js";
import { agentsOf, outcome } from "./data.js";
import { cloud, histogram, MANY } from "./density.js";
import { choice, h, interval, key, number } from "./dom.js";
import { figure, plot } from "./figure.js";

const FEW = 60;  // agents that have names in a chart, if it is wide

export function outcomeLegend(domain = OUTCOMES.domain) {
  return h("div", { class: "controls" }, domain.map((name) =>
    key(name, OUTCOMES.range[OUTCOMES.domain.indexOf(name)])));
}

/** Bars from `base` to each value, sorted as they come, with intervals; of many a histogram. Rows are {name, value, lo, hi, outcome}. */
export function sortedBars(width, label, rows, { base, axis, least = -Infinity }) {
  if (rows.length > MANY) return histogram(width, label, rows, { base, axis });
  const finite = rows.filter((r) => Number.isFinite(r.value));
  const few = rows.length <= Math.min(FEW, width / 14);
  const ends = finite.flatMap((r) => (Number.isFinite(r.lo) ? [r.value, r.lo, r.hi] : [r.value]));
  // A few wide intervals must not flatten all the others.
  const sorted = finite.map((r) => Math.abs(r.value - base)).sort((a, b) => a - b);
  const reach = 4 * (sorted[Math.floor(0.98 * (sorted.length - 1))] || 1);
  const lo = Math.max(Math.min(0, ...ends), base - reach, least), hi = Math.min(Math.max(base, ...ends), base + reach);
  const clamp = (x) => Math.min(hi, Math.max(lo, x));
  const bounded = finite.filter((r) => Number.isFinite(r.lo));
  const gap = few ? 0.14 : 0;
  const title = (r) => `${r.name}\n${number(r.value)} ${interval(r.lo, r.hi)}\n${r.outcome}${r.more ? `\n${r.more}` : ""}`;
  const place = new Map(finite.map((r, i) => [r, i]));
  const letters = Math.max(...finite.map((r) => String(r.name).length), 1);
  const slanted = few && letters * 9 > (width - 70) / finite.length;
  return plot(width, label, {
    height: 300 + (slanted ? Math.min(110, letters * 5) : 0),
    marginBottom: slanted ? 30 + Math.min(110, letters * 5) : 36,
    x: {
      label: few ? null : `${finite.length.toLocaleString("en")} agents, sorted`, domain: [-0.5, finite.length - 0.5], axis: few ? null : "bottom",
      ticks: [],
    },
    y: { label: axis, grid: true, domain: [lo, hi] },
    color: OUTCOMES,
    marks: [
      Plot.rect(finite, { x1: (r) => place.get(r) - 0.5 + gap, x2: (r) => place.get(r) + 0.5 - gap, y1: base, y2: (r) => clamp(r.value), fill: "outcome", fillOpacity: 0.85 }),
      few
        ? Plot.ruleX(bounded, { x: (r) => place.get(r), y1: (r) => clamp(r.lo), y2: (r) => clamp(r.hi), stroke: "currentColor", strokeWidth: 1.3, strokeOpacity: 0.75 })
        : Plot.areaY(bounded, { x: (r) => place.get(r), y1: (r) => clamp(r.lo), y2: (r) => clamp(r.hi), curve: "step", fill: "currentColor", fillOpacity: 0.18 }),
      Plot.ruleY([base], { stroke: "currentColor", strokeWidth: 1.2 }),
      few ? Plot.axisX(finite.map((_, i) => i), { anchor: "bottom", label: null, tickSize: 0, tickFormat: (i) => short(finite[i].name), tickRotate: slanted ? -60 : 0 }) : null,
      Plot.tip(finite, Plot.pointerX({ x: (r) => place.get(r), y: (r) => clamp(r.value), title })),
    ],
  });
}

function short(name) {
  const letters = [...String(name)];
  return letters.length > 22 ? `${letters.slice(0, 21).join("")}…` : letters.join("");
}

export function agentFigures(result, state, here) {
  const view = { method: null };
  const pickers = [h("span"), h("span")];
  const candidates = () => here().methods.filter((m) => m.columns.vs_independent && m.kind !== "independent");
  const method = () => candidates().find((m) => m.name === view.method) ?? candidates().find((m) => m.name === here().headline?.method) ?? candidates()[0];
  const rows = () => agentsOf(here(), method()).sort((a, b) => a.vs_independent - b.vs_independent);
  const figures = [];

  function refresh(picker) {
    picker.replaceChildren(choice("Method", candidates().map((m) => [m.name, m.name]), method().name, (name) => {
      view.method = name;
      for (const one of figures) one.update();
    }));
  }
  const redrawn = () => (result.manifest.spec.problem?.redraw === "samples" ? ""
    : " Each replicate draws a new system, so an agent is a place in it, not a person.");
  const shown = () => (here().shown ? ` ${here().shown.length} of ${here().agents} agents are shown, evenly spaced in the order of their gain; agents.csv holds all.` : "");
  const table = () => {
    const columns = ["agent", ...Object.keys(method().columns)];
    return { columns, rows: rows().map((r) => columns.map((c) => r[c])) };
  };

  figures.push(figure({
    id: "agents",
    title: "What each agent gained",
    controls: [pickers[0], outcomeLegend()],
    draw: (width) => {
      if (!method()) return null;
      refresh(pickers[0]);
      return sortedBars(width, "Error of each agent against learning alone, sorted", rows().map((r) => ({
        name: here().agents > FEW || here().shown ? `agent ${r.agent}` : r.agent, value: r.vs_independent, lo: r.vs_lo, hi: r.vs_hi, outcome: outcome(r),
      })), { base: 1, axis: "error / error of independent learning", least: 0 });
    },
    table,
    note: () => "Below 1: the agent's error is smaller than learning alone. Gained and lost: the whole 90 % interval lies on one side, " +
      "so about 1 in 20 agents that are even will seem to have gained." + redrawn() + shown(),
  }));

  figures.push(figure({
    id: "distance",
    title: "Distance to the centre, and gain",
    controls: [pickers[1], outcomeLegend()],
    draw: (width) => {
      if (!method()?.columns.distance) return null;
      const data = rows().filter((r) => Number.isFinite(r.distance) && Number.isFinite(r.vs_independent)).map((r) => ({ ...r, outcome: outcome(r) }));
      const far = Math.max(...data.map((r) => r.distance));
      if (!(far - Math.min(...data.map((r) => r.distance)) > 1e-9 * far) || far < 1e-9) return null;
      refresh(pickers[1]);
      return cloud(width, "Distance of each agent's solution to the central one, against its error relative to independent learning", data, {
        x: "distance", y: "vs_independent",
        options: {
          height: 320,
          x: { label: "distance to the centre, |x* − central x*|", nice: true, zero: true },
          y: { label: "error / error of independent learning", grid: true, nice: true, domain: [0, Math.max(1, ...data.map((r) => 1.15 * r.vs_independent))] },
          color: OUTCOMES,
        },
        under: () => [Plot.ruleY([1], { stroke: "currentColor" })],
        marks: (few) => [
          Plot.ruleX(few.length <= 300 ? few : [], { x: "distance", y1: "vs_lo", y2: "vs_hi", stroke: "outcome", strokeOpacity: 0.4, clip: true }),
          Plot.dot(few, { x: "distance", y: "vs_independent", fill: "outcome", r: few.length > 300 ? 2 : 4, fillOpacity: 0.85 }),
          Plot.tip(few, Plot.pointer({ x: "distance", y: "vs_independent", title: (r) => `agent ${r.agent}\ndistance ${number(r.distance)}\n${number(r.vs_independent)} ${interval(r.vs_lo, r.vs_hi)}` })),
        ],
      });
    },
    table: () => ({ columns: ["agent", "distance", "vs_independent", "vs_lo", "vs_hi"], rows: rows().map((r) => [r.agent, r.distance, r.vs_independent, r.vs_lo, r.vs_hi]) }),
    note: () => "How far each agent's true solution is from the solution of the central system, mean over replicates." + shown(),
  }));
  return figures;
}
