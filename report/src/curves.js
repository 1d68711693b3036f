// Error against steps, with 90 % bands.
import * as Plot from "@observablehq/plot";
import { curvesOf } from "./data.js";
import { choice, h, number, toggle } from "./dom.js";
import { figure, plot } from "./figure.js";
import { methodToggles } from "./toggles.js";

export function curvesFigure(result, state, here) {
  const view = { log: true, agent: "all" };
  const agents = h("span");
  const toggles = methodToggles(state);
  const points = () => curvesOf(result, here()).filter((p) => p.agent === view.agent && !state.hidden.has(p.method));

  const self = figure({
    id: "curves",
    title: "Error while learning",
    controls: [agents, toggle("logarithmic", true, (on) => { view.log = on; self.update(); }), toggles.node],
    draw,
    table: () => ({
      columns: ["method", "agent", "step", "mse_mean", "mse_lo", "mse_hi"],
      rows: points().map((p) => [p.method, p.agent, p.step, p.mean, p.lo, p.hi]),
    }),
    note: () => `Mean squared error over ${here().used} replicates${view.agent === "all" ? " and all agents" : ""}, with 90 % bands.` +
      (result.thinned_curves ? " Not all curves and points are here; curves.csv holds them." : ""),
  });

  function controls() {
    const known = [...new Set(here().methods.flatMap((m) => m.curves.map((c) => c.agent)))];
    if (!known.includes(view.agent)) view.agent = "all";
    agents.replaceChildren(...(known.length > 1
      ? [choice("Error of", known.map((a) => [a, a === "all" ? "all agents" : `agent ${a}`]), view.agent, (a) => { view.agent = a; self.update(); })]
      : []));
    toggles.sync(here().methods.filter((m) => m.curves.length).map((m) => m.name));
  }

  function draw(width) {
    controls();
    const data = points().filter((p) => Number.isFinite(p.mean));
    if (!here().methods.some((m) => m.curves.length)) return null;
    if (!data.length) return h("p", { class: "note" }, "All methods are switched off.");
    const positive = data.map((p) => p.mean).filter((x) => x > 0);
    const log = view.log && positive.length > 0;
    const floor = Math.min(...positive) / 3;
    const clip = (x) => (log ? Math.max(x, floor) : x);
    const value = (p, key) => clip(p[key]);
    return plot(width, "Error against steps, by method", {
      height: Math.min(420, Math.max(260, width * 0.45)),
      x: { label: "steps", grid: false, nice: false },
      y: { label: "mean squared error", type: log ? "log" : "linear", grid: true, tickFormat: log ? (x) => number(x, 2) : undefined, ...(log ? { ticks: 6 } : { zero: true }) },
      color: { domain: [...state.colours.keys()], range: [...state.colours.values()] },
      marks: [
        Plot.areaY(data.filter((p) => Number.isFinite(p.lo)), { x: "step", y1: (p) => value(p, "lo"), y2: (p) => value(p, "hi"), fill: "method", fillOpacity: 0.16 }),
        Plot.lineY(data, { x: "step", y: (p) => value(p, "mean"), stroke: "method", strokeWidth: 1.8 }),
        data.length < 40 ? Plot.dot(data, { x: "step", y: (p) => value(p, "mean"), fill: "method", r: 2.5 }) : null,
        Plot.tip(data, Plot.pointer({ x: "step", y: (p) => value(p, "mean"), stroke: "method",
          title: (p) => `${p.method}\nstep ${p.step}\n${number(p.mean)}${Number.isFinite(p.lo) ? `\n[${number(p.lo, 3)}, ${number(p.hi, 3)}]` : ""}` })),
      ],
    });
  }
  return self;
}
