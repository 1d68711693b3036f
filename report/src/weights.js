// What the density ratios' weights look like, and whether the correction's mean is 0.
import * as Plot from "@observablehq/plot";
import { agentsOf } from "./data.js";
import { h, number } from "./dom.js";
import { figure, plot } from "./figure.js";

const KNOWN = {
  ess: "effective share of all samples",
  weight_max: "largest weight",
  weight_outside: "share of weights outside [0, n]",
  drift_z: "z of the correction's mean (0: as it should be)",
  guard_weight: "share of the correction that the guard lets through",
  guard_debias: "share of the correction's mean that the guard takes off",
  guard_share: "weight of the collaborative iterate in the guarded solution",
};

const MANY = 400;  // dots of a method in a panel

/** The weight of the collaborative iterate, on average over the agents of the alarm; null without a guard. */
function guardedShare(setting, method) {
  const agents = new Set(method.alarm.agents);
  const shares = agentsOf(setting, method).filter((r) => agents.has(r.agent) && Number.isFinite(r.guard_share)).map((r) => r.guard_share);
  return shares.length ? shares.reduce((a, b) => a + b) / shares.length : null;
}

export function alarmWords(setting) {
  return setting.methods.filter((m) => m.alarm?.agents.length).map((m) => {
    const share = guardedShare(setting, m);
    return `${m.name}: the correction of ${m.alarm.agents.length} of ${setting.agents} agents has a mean that is not 0 ` +
      `(z up to ${number(m.alarm.largest, 3)}): its density ratio is wrong or not learnt yet; ` +
      (share === null ? "their solutions are biased."
        : `the guard gives their collaborative iterates a weight of ${number(share, 2)}.`);
  });
}

/** Of many agents those at evenly spaced places in the order of their values. */
function thinned(rows, name) {
  if (rows.length <= MANY) return rows;
  const sorted = [...rows].sort((a, b) => a[name] - b[name]);
  return Array.from({ length: MANY }, (_, i) => sorted[Math.floor((i * (sorted.length - 1)) / (MANY - 1))]);
}

export function weightFigure(state, here) {
  const rows = () => here().methods.flatMap((m) => agentsOf(here(), m).map((r) => ({ ...r, method: m.name })))
    .filter((r) => Object.keys(KNOWN).some((name) => Number.isFinite(r[name])));
  const known = (data) => Object.keys(KNOWN).filter((name) => data.some((r) => Number.isFinite(r[name])));

  function panel(width, name, data) {
    const known = data.filter((r) => Number.isFinite(r[name]));
    const methods = [...new Set(known.map((r) => r.method))];
    const mine = methods.flatMap((m) => thinned(known.filter((r) => r.method === m), name));
    const left = Math.min(150, 20 + 7 * Math.max(...methods.map((m) => [...m].length)));
    return h("div", {}, h("h4", {}, KNOWN[name]), plot(width, KNOWN[name], {
      height: 44 + 24 * methods.length, marginLeft: left, marginTop: 8, marginBottom: 28,
      x: { label: null, grid: true, ticks: 4, nice: true, tickFormat: (v) => number(v, 3) },
      y: { label: null, domain: methods, tickSize: 0, tickFormat: (m) => ([...m].length > 19 ? `${[...m].slice(0, 18).join("")}…` : m) },
      color: { domain: [...state.colours.keys()], range: [...state.colours.values()] },
      marks: [
        name === "drift_z" ? Plot.ruleX([0], { stroke: "currentColor", strokeOpacity: 0.5 }) : null,
        Plot.dot(mine, { x: name, y: "method", fill: "method", r: mine.length > MANY ? 2 : 3.5, fillOpacity: mine.length > MANY ? 0.3 : 0.55 }),
        Plot.tip(mine, Plot.pointer({ x: name, y: "method", title: (r) => `${r.method}\nagent ${r.agent}\n${number(r[name])}` })),
      ],
    }));
  }

  return figure({
    id: "weights",
    title: "Agent by agent",
    draw: (width) => {
      const data = rows();
      const names = known(data);
      if (!names.length) return h("p", { class: "note" }, "No method here weighs the others' samples.");
      const across = Math.max(1, Math.floor((width + 20) / 320));
      const each = Math.floor((width - 20 * (across - 1)) / across);
      return h("div", { class: "small" }, names.map((name) => panel(each, name, data)));
    },
    table: () => {
      const data = rows();
      const names = known(data);
      return { columns: ["method", "agent", ...names], rows: data.map((r) => [r.method, r.agent, ...names.map((n) => r[n] ?? NaN)]) };
    },
    note: () => (rows().length ? `One dot per agent${here().agents > MANY ? `; of many, ${MANY} at evenly spaced places` : ""}.` : ""),
  });
}
