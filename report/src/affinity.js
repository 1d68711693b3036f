// The page of affinity: before training, who should gain from learning together, and who is like whom.
import * as Plot from "@observablehq/plot";
import { sortedBars } from "./agents.js";
import { OUTCOMES } from "./colours.js";
import { unpack } from "./data.js";
import { MANY } from "./density.js";
import { count, h, interval, key, number } from "./dom.js";
import { figure, plot, withKey } from "./figure.js";
import { closing, opening, provenance, tiles } from "./frame.js";
import { numeric, sortable, text } from "./table.js";

const PROSPECTS = ["should gain", "about even", "should learn alone"];
const PAGE = 25;

function readAgents({ agents }) {
  const numbers = Object.entries(agents.numbers).map(([name, packed]) => [name.split("."), unpack(packed)]);
  return agents.agent.map((agent, i) => {
    const one = { agent, rows: agents.rows[i], used: agents.used[i], prospect: agents.prospect.charCodeAt(i) - 65 };
    for (const [[group, name], values] of numbers) (one[group] ??= {})[name] = values[i];
    return one;
  });
}

const estimate = (e, digits = 3) => numeric(e.value, Number.isFinite(e.value) ? `${number(e.value, digits)} ${interval(e.lo, e.hi)}` : "–");
const bound = (e) => estimate({ value: Math.max(0, e.value), lo: Math.max(0, e.lo), hi: Math.max(0, e.hi) });

function prospectFigure(result, agents) {
  return figure({
    id: "prospects",
    title: "Expected error together, over that of learning alone",
    controls: [PROSPECTS.map((name, i) => key(name, OUTCOMES.range[i]))],
    draw: (width) => sortedBars(width, "Expected error of each agent on new rows over that of learning alone", agents.map((a) => ({
      name: a.agent, ...a.predicted_loss, outcome: OUTCOMES.domain[a.prospect] ?? "even", more: PROSPECTS[a.prospect],
    })), { base: 1, axis: "expected error / error alone", least: 0 }),
    table: () => ({
      columns: ["agent", "rows", "pilot_rows", "loss_of_alone", "lo", "hi", "excess_of_alone", "prospect"],
      rows: agents.map((a) => [a.agent, a.rows, a.used, a.predicted_loss.value, a.predicted_loss.lo, a.predicted_loss.hi, a.predicted_excess.value, PROSPECTS[a.prospect] ?? ""]),
    }),
    note: () => `On new rows, with models learnt from all rows together${agents.length > MANY ? "" : ", with 90 % intervals"}. Below 1: learning together should help.` +
      (agents.length < result.agents.count ? ` ${agents.length.toLocaleString("en")} of ${result.agents.count.toLocaleString("en")} agents are on this page; affinity.csv holds all.` : ""),
  });
}

function matrixFigure({ alike }) {
  const names = alike.order, n = names.length;
  const distances = unpack(alike.distance);
  const pairs = Array.from(distances, (distance, k) => ({ i: k % n, j: Math.floor(k / n), distance }));
  return figure({
    id: "alike",
    title: "Who looks alike",
    draw: (width) => {
      if (n < 2) return null;
      const few = n <= 40;
      const letters = Math.min(18, Math.max(...names.map((name) => [...name].length)));
      const left = few ? 16 + 7 * letters : 20, side = Math.min(width - 30, 560);
      const name = (i) => [...names[i]].slice(0, 18).join("");
      return withKey(plot(side, "Differences of the coefficients of all pairs of agents", {
        height: side - left + 30 + (few ? 6 * letters : 0), marginLeft: left, marginTop: 10, marginBottom: few ? 10 + 6 * letters : 20,
        x: { domain: [-0.5, n - 0.5], axis: null }, y: { domain: [n - 0.5, -0.5], axis: null },
        color: { scheme: "YlGnBu", reverse: true, domain: [0, Math.max(2, distances.reduce((a, b) => Math.max(a, b), 0))] },
        marks: [
          n <= 60 ? Plot.rect(pairs, { x1: (p) => p.i - 0.5, x2: (p) => p.i + 0.5, y1: (p) => p.j - 0.5, y2: (p) => p.j + 0.5, fill: "distance" })
            : Plot.raster(Array.from(distances), { width: n, height: n, x1: -0.5, x2: n - 0.5, y1: -0.5, y2: n - 0.5, imageRendering: "pixelated" }),
          few ? Plot.axisY([...names.keys()], { label: null, tickSize: 0, tickFormat: name }) : null,
          few ? Plot.axisX([...names.keys()], { label: null, tickSize: 0, tickRotate: -60, tickFormat: name }) : null,
          Plot.tip(pairs, Plot.pointer({ x: "i", y: "j", maxRadius: 20, title: (p) => `${names[p.i]}\n${names[p.j]}\n${number(p.distance, 3)} standard errors apart` })),
        ],
      }), "difference in standard errors");
    },
    table: () => ({ columns: ["agent", "nearest", "difference", "furthest", "its_difference"], rows: names.map((name, j) => {
      const list = pairs.slice(j * n, (j + 1) * n).filter((p) => p.i !== j).sort((a, b) => a.distance - b.distance);
      return [name, names[list[0].i], list[0].distance, names[list.at(-1).i], list.at(-1).distance];
    }) }),
    note: () => "Differences of coefficients in units of their standard error: above 2 two agents are clearly different. Neighbours look alike." +
      (n < alike.all ? ` ${n} of ${alike.all.toLocaleString("en")} agents are shown.` : ""),
  });
}

function agentsTable(agents) {
  const known = (name) => agents.some((a) => Number.isFinite(a[name].value));
  const columns = [
    ["agent", (a) => ({ ...text(a.agent), tone: "name" })],
    ["rows", (a) => numeric(a.rows, a.rows.toLocaleString("en"))],
    ["looked at", (a) => numeric(a.used, a.used.toLocaleString("en"))],
    ["loss, of alone", (a) => estimate(a.predicted_loss)],
    ...(known("predicted_excess") ? [["excess, of alone", (a) => estimate(a.predicted_excess)]] : []),
    ["prospect", (a) => ({ ...text(PROSPECTS[a.prospect] ?? "–"), tone: OUTCOMES.domain[a.prospect] })],
    ["columns' distance, at least", (a) => bound(a.environment)],
    ["delta_cen", (a) => estimate(a.delta_cen)],
    ...(known("lambda") ? [["lambda", (a) => estimate(a.lambda)]] : []),
  ];
  const table = sortable("All agents", columns, () => agents, -1, { page: PAGE, search: (a) => `${a.agent} ${PROSPECTS[a.prospect] ?? ""}` });
  return h("div", { class: "card", id: "agents" }, h("h3", {}, "All agents"), table.node,
    h("p", { class: "note" }, "Loss: expected error on new rows together, over that of learning alone; excess: the same beyond the noise. " +
      "Columns' distance: total variation of the agent's columns to those of all. delta_cen: the larger of that and the distance of its coefficients to the centre, 0 to 1. " +
      `${known("lambda") ? "lambda: smallest eigenvalue of its columns' second moments. " : ""}[ ]: 90 % intervals.`));
}

export function affinityPage(result) {
  const { manifest, prospects, agents: { count: n } } = result;
  const agents = readAgents(result);
  const scores = (name, e, words) => [name, number(Math.max(0, e.value), 3), `${interval(Math.max(0, e.lo), Math.max(0, e.hi))} ${words}`];
  return [
    opening({ eyebrow: ["affpcl affinity", (manifest.spec.files ?? []).join(", ")].join(" · "), title: `${manifest.spec.target}: what learning together should give`,
      headline: n > 1 ? `${prospects.gain.toLocaleString("en")} of ${n.toLocaleString("en")} agents should gain from learning together, ${prospects.even} should be about even, and ${prospects.alone} should learn alone.`
        : "There is one agent, and none to learn with.",
      detail: `Expected from ${result.pilot_rows.toLocaleString("en")} of ${result.rows.toLocaleString("en")} rows, before any model is fitted.` }),
    result.notes?.length ? h("p", { class: "note" }, `Notes: ${result.notes.join("; ")}.`) : null,
    tiles([["Agents", n.toLocaleString("en"), `${count(result.rows, "row")}, ${count(result.columns, "column")}`],
      scores("Agents' columns differ by (delta_env)", result.delta_env, "at least; the largest of all pairs, 0 to 1"),
      scores("Their coefficients by (delta_obj)", result.delta_obj, "the largest of all pairs, 0 to 1"),
      scores("Noise", result.noise_share, "of the target's variance, which no column explains")]),
    h("section", {}, h("h2", {}, "Who should gain"), n > 1 ? prospectFigure(result, agents).node : null, agentsTable(agents)),
    result.alike.order.length > 1 ? h("section", {}, h("h2", {}, "Who is like whom"), matrixFigure(result).node) : null,
    provenance(result), closing(),
  ].filter(Boolean);
}
