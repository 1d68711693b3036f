// Coefficients of a fit: of the centre, agent by agent, as distances to the centre and to each other.
import * as Plot from "@observablehq/plot";
import { OUTCOMES } from "./colours.js";
import { unpack } from "./data.js";
import { cloud, MANY } from "./density.js";
import { choice, h, number } from "./dom.js";
import { figure, plot, withKey } from "./figure.js";

const NORMAL_90 = 1.6449;
const PAIRS = 200;  // agents in the matrix of distances
const BARS = 30;    // coefficients of the centre that are drawn

function rowsOf(packed, width) {
  const all = unpack(packed);
  return Array.from({ length: all.length / width }, (_, i) => all.subarray(i * width, (i + 1) * width));
}

/** What is known of the coefficients, per unit of their columns: x[agent][coefficient] and the like, channel by channel. */
export function readCoefficients(result) {
  const { model } = result;
  const width = model.names.length;
  if (!width || !result.agents.length) return null;
  const sd = unpack(model.sd);
  const channels = model.channels.map((channel, c) => {
    const central = model.centre[c];
    const one = {
      name: central.name, x: rowsOf(channel.x, width), se: rowsOf(channel.se, width), between: unpack(channel.between), standard: unpack(channel.centre),
      centre: unpack(central.x), half: unpack(central.half), spread: central.spread ? unpack(central.spread) : null, pooled: central.pooled,
    };
    const intercept = unpack(channel.intercept);
    // Deviations from the centre in units of the spread between agents; coefficients that do not vary are left out.
    const most = Math.max(...one.between);
    const varied = [...one.between.keys()].filter((k) => one.between[k] > 1e-6 * most);
    const standard = (i, k) => (model.names[k] === "intercept" ? intercept[i] : one.x[i][k] * sd[k]);
    one.deviations = one.x.map((_, i) => varied.map((k) => (standard(i, k) - one.standard[k]) / one.between[k]));
    one.off = (i, k) => (one.between[k] > 1e-6 * most ? (standard(i, k) - one.standard[k]) / one.between[k] : 0);
    return one;
  });
  const deviations = result.agents.map((_, i) => channels.flatMap((c) => c.deviations[i]));
  return { names: model.names, sd, channels, deviations, errors: Number.isFinite(channels[0].half[0]) || Number.isFinite(channels[0].half[1] ?? NaN) };
}

export const distance = (a, b) => Math.sqrt(a.reduce((sum, value, c) => sum + (value - (b ? b[c] : 0)) ** 2, 0) / a.length);

/** Agents along the direction in which they differ most, so that neighbours are alike: power iteration. */
function likeness(rows) {
  let direction = rows[0].map((_, c) => 1 + (c % 3));
  for (let round = 0; round < 30; ++round) {
    const scores = rows.map((row) => row.reduce((sum, value, c) => sum + value * direction[c], 0));
    direction = direction.map((_, c) => rows.reduce((sum, row, i) => sum + row[c] * scores[i], 0));
    const size = Math.hypot(...direction) || 1;
    direction = direction.map((value) => value / size);
  }
  const score = (row) => row.reduce((sum, value, c) => sum + value * direction[c], 0);
  return [...rows.keys()].sort((a, b) => score(rows[a]) - score(rows[b]));
}

/** The coefficient in which agents differ most, for what is known of it; the intercept only where there is no other. */
function mostVaried({ names, channels, sd }) {
  const { off, se, between, x } = channels[0];
  const scale = (c) => (Number.isFinite(se[0][c]) ? Math.hypot(...se.slice(0, 1000).map((row) => row[c] * sd[c])) / between[c] : 1);
  const told = (c) => (between[c] > 0 ? Math.hypot(...x.slice(0, 1000).map((_, i) => off(i, c))) / (scale(c) || 1) : 0);
  const byErrors = Number.isFinite(se[0][1] ?? NaN);
  const candidates = [...names.keys()].filter((c) => names[c] !== "intercept");
  const value = (c) => (byErrors ? told(c) : between[c]);
  return candidates.reduce((best, c) => (value(c) > value(best) ? c : best), candidates[0] ?? 0);
}

/** What a coefficient is per: "sales per unit of footfall", "sales, colour=red beside colour=blue". */
function unitOf(result, name, channel) {
  const { model } = result;
  const of = model.classes.length || !model.numeric ? "linear predictor" : channel.name;
  if (name === "intercept") return `${of} where all columns are 0`;
  const [column, level] = name.split("=");
  return level !== undefined && model.levels[column] !== undefined ? `${of}, ${name} beside ${model.levels[column]}` : `${of} per unit of ${name}`;
}

export function coefficientFigures(result, known, pick) {
  if (!known) return null;
  const { model, agents, score } = result;
  const values = result.manifest.spec.task === "td";  // of states: columns as they are
  const { names, channels, sd, deviations: rows, errors } = known;
  const left = model.all > names.length ? ` The ${names.length} of ${model.all} coefficients in which agents differ most are here; model.json holds all.` : "";
  const varies = rows[0].length > 0;
  const view = { coefficient: mostVaried(known), channel: 0, central: 0 };
  const channelChoice = (key, figure) => (channels.length > 1
    ? choice(model.outcomes.length ? "Outcome" : "Class", channels.map((c, i) => [i, model.classes[i] ?? c.name]), 0, (i) => { view[key] = Number(i); figure().update(); }) : null);

  const central = () => {
    const { centre, half, spread, standard } = channels[view.central];
    return names.map((name, k) => ({ name, k, centre: centre[k], half: half[k], spread: spread ? spread[k] : NaN, effect: standard[k], scale: name === "intercept" ? 1 : sd[k] }));
  };
  const centralFigure = figure({
    id: "central",
    title: "What all agents share",
    controls: [channelChoice("central", () => centralFigure)],
    draw: (width) => {
      const data = central().filter((r) => r.name !== "intercept").sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, BARS);
      if (!data.length) return null;
      const words = (r) => `${number(r.centre, 3)}${Number.isFinite(r.half) ? ` ± ${number(r.half, 2)}` : ""}`;
      const short = (name) => ([...name].length > 20 ? `${[...name].slice(0, 19).join("")}…` : name);
      const letters = Math.max(...data.map((r) => [...short(r.name)].length));
      return plot(width, "Coefficients of the centre, with 90 % intervals and the spread between agents", {
        height: 60 + 28 * data.length, marginLeft: 20 + 7 * letters, marginRight: 120,
        x: { label: `effect of one standard deviation of the column${model.numeric && !model.classes.length ? ` on ${channels[view.central].name}` : ""}`, grid: true, nice: true },
        y: { label: null, type: "point", domain: data.map((r) => r.k), tickFormat: (k) => short(names[k]), tickSize: 0 },
        marks: [
          Plot.ruleX([0], { stroke: "currentColor", strokeOpacity: 0.6 }),
          Plot.ruleY(data.filter((r) => r.spread > 0), { y: "k", x1: (r) => r.effect - NORMAL_90 * r.spread * r.scale, x2: (r) => r.effect + NORMAL_90 * r.spread * r.scale, stroke: "var(--gained)", strokeOpacity: 0.22, strokeWidth: 10 }),
          Plot.ruleY(data.filter((r) => Number.isFinite(r.half)), { y: "k", x1: (r) => r.effect - r.half * r.scale, x2: (r) => r.effect + r.half * r.scale, stroke: "currentColor", strokeWidth: 2 }),
          Plot.dot(data, { y: "k", x: "effect", fill: "var(--gained)", r: 4.5 }),
          Plot.text(data, { y: "k", text: words, frameAnchor: "right", dx: 112, textAnchor: "end", fill: "currentColor" }),
          Plot.tip(data, Plot.pointerY({ y: "k", x: "effect", title: (r) => `${r.name}\n${words(r)} per unit\nspread between agents ${number(r.spread, 3)}` })),
        ],
      });
    },
    table: () => ({
      columns: ["coefficient", "per_unit", "lo", "hi", "spread_between_agents", "what"],
      rows: central().map((r) => [r.name, r.centre, r.centre - r.half, r.centre + r.half, r.spread, unitOf(result, r.name, channels[view.central])]),
    }),
    note: () => `On the right: per unit of the column${errors ? ", with half of its 90 % interval (the line)" : ""}. Pale: where 90 % of agents lie.${left}`,
  });

  const one = () => {
    const { x, se, centre } = channels[view.channel];
    const k = view.coefficient;
    return agents.map((a, i) => ({ agent: a.agent, place: i, rows: a.rows, given: a.given, value: x[i][k], se: se[i][k], off: x[i][k] - centre[k] }))
      .sort((a, b) => a.value - b.value);
  };
  const coefficients = figure({
    id: "coefficients",
    title: "A coefficient, agent by agent",
    controls: [
      choice("Coefficient", names.map((name, i) => [i, name]), view.coefficient, (i) => { view.coefficient = Number(i); coefficients.update(); }),
      channelChoice("channel", () => coefficients),
    ],
    draw: (width) => {
      const all = one();
      const many = all.length > MANY;
      const data = many ? Array.from({ length: MANY }, (_, i) => all[Math.round((i * (all.length - 1)) / (MANY - 1))]) : all;
      const few = data.length <= 40;
      const channel = channels[view.channel];
      const [c, ce] = [channel.centre[view.coefficient], channel.half[view.coefficient]];
      const bounded = data.filter((r) => Number.isFinite(r.se));
      const place = new Map(data.map((r, i) => [r, i]));
      const lo = (r) => r.value - NORMAL_90 * r.se, hi = (r) => r.value + NORMAL_90 * r.se;
      const letters = Math.min(22, Math.max(...data.map((r) => [...r.agent].length)));
      const slanted = few && letters * 9 > (width - 70) / data.length;
      const bottom = slanted ? 30 + letters * 5 : 36;
      return clickable(plot(width, `Coefficient of ${names[view.coefficient]} for each agent${bounded.length ? ", with 90 % intervals" : ""}`, {
        height: 280 + bottom, marginBottom: bottom,
        x: { domain: [-0.5, data.length - 0.5], axis: null },
        y: { label: unitOf(result, names[view.coefficient], channel), grid: true, nice: true },
        marks: [
          Plot.rect(Number.isFinite(ce) ? [0] : [], { x1: -0.5, x2: data.length - 0.5, y1: c - ce, y2: c + ce, fill: "var(--alone)", fillOpacity: 0.25 }),
          Plot.ruleY([c], { stroke: "var(--alone)", strokeDasharray: "5 4" }),
          Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.6 }),
          many
            ? [Plot.areaY(bounded, { x: (r) => place.get(r), y1: lo, y2: hi, fill: "var(--gained)", fillOpacity: 0.25 }), Plot.lineY(data, { x: (r) => place.get(r), y: "value", stroke: "var(--gained)", strokeWidth: 2 })]
            : [Plot.ruleX(bounded, { x: (r) => place.get(r), y1: lo, y2: hi, stroke: "var(--gained)", strokeOpacity: few ? 0.9 : 0.45 }), Plot.dot(data, { x: (r) => place.get(r), y: "value", fill: "var(--gained)", r: few ? 4 : 2.5 })],
          few ? Plot.axisX(data.map((_, i) => i), { anchor: "bottom", label: null, tickSize: 0, tickFormat: (i) => [...data[i].agent].slice(0, 22).join(""), tickRotate: slanted ? -60 : 0 }) : null,
          Plot.tip(data, Plot.pointerX({ x: (r) => place.get(r), y: "value", title: (r) => `${r.agent} (${r.given}, ${r.rows} rows)\n${number(r.value)}${Number.isFinite(r.se) ? ` ± ${number(NORMAL_90 * r.se, 3)}` : ""}` })),
        ],
      }), pick);
    },
    table: () => ({
      columns: ["agent", "coefficient", "value", ...(errors ? ["se"] : []), "from_centre"],
      rows: one().map((r) => [r.agent, names[view.coefficient], r.value, ...(errors ? [r.se] : []), r.off]),
    }),
    note: () => (values ? "Columns as they are; of named states the intercept is the first one's value, the others are differences to it. " : "Per unit of the column. ") +
      (agents.length > MANY ? `Agents in the order of their coefficient, ${MANY} of them drawn as one line. ` : "") +
      (errors ? "Band and lines: 90 % intervals. Dashed: the centre, with its interval." : "Dashed: the centre. A stream has no standard errors of coefficients.") + left,
  });

  const far = () => agents.map((a, i) => ({ agent: a.agent, place: i, distance: distance(rows[i]), gain: a.gain?.mean ?? NaN, lo: a.gain?.lo ?? NaN, hi: a.gain?.hi ?? NaN, verdict: a.verdict ?? "even" }));
  const distances = figure({
    id: "distance",
    title: "Distance to the centre, and gain",
    draw: (width) => {
      if (!varies || !score) return null;
      return clickable(cloud(width, "Distance of each agent's coefficients to the centre, against its gain", far(), {
        x: "distance", y: "gain",
        options: {
          height: 340,
          x: { label: "distance to the centre, in spreads between agents", zero: true, nice: true },
          y: { label: "gain", grid: true, nice: true },
          color: OUTCOMES,
        },
        under: () => [Plot.ruleY([0], { stroke: "currentColor" })],
        marks: (data) => [
          Plot.ruleX(data.length <= 300 ? data : [], { x: "distance", y1: "lo", y2: "hi", stroke: "verdict", strokeOpacity: 0.35 }),
          Plot.dot(data, { x: "distance", y: "gain", fill: "verdict", r: data.length > 100 ? 3 : 4.5, fillOpacity: 0.85 }),
          Plot.tip(data, Plot.pointer({ x: "distance", y: "gain", title: (r) => `${r.agent}\ndistance ${number(r.distance, 3)}\ngain ${number(r.gain)}\n${r.verdict}` })),
        ],
      }), pick);
    },
    table: () => ({ columns: ["agent", "distance", "gain", "lo", "hi"], rows: far().map((r) => [r.agent, r.distance, r.gain, r.lo, r.hi]) }),
    note: () => `Root mean square over coefficients, each in units of its spread between agents.${left}`,
  });

  const order = varies ? likeness(rows) : [];
  const shown = order.length <= PAIRS ? order : Array.from({ length: PAIRS }, (_, i) => order[Math.round((i * (order.length - 1)) / (PAIRS - 1))]);
  const pairs = () => shown.flatMap((a, j) => shown.map((b, i) => ({ i, j, place: b, a: agents[a].agent, b: agents[b].agent, distance: distance(rows[a], rows[b]) })));
  const matrix = figure({
    id: "affinity",
    title: "How alike the agents are",
    draw: (width) => {
      if (!varies || agents.length < 3) return null;
      const data = pairs();
      const n = shown.length;
      const few = n <= 40;
      const letters = Math.min(18, Math.max(...shown.map((a) => [...agents[a].agent].length)));
      const left = few ? 16 + 7 * letters : 20;
      const side = Math.min(width - 30, 560);
      const farthest = data.map((p) => p.distance).sort((p, q) => p - q)[Math.floor(0.98 * (data.length - 1))];
      const name = (i) => [...agents[shown[i]].agent].slice(0, 18).join("");
      return withKey(clickable(plot(side, "Distances between the coefficients of all pairs of agents", {
        height: side - left + 30 + (few ? 6 * letters : 0), marginLeft: left, marginTop: 10, marginBottom: few ? 10 + 6 * letters : 20,
        x: { domain: [-0.5, n - 0.5], axis: null }, y: { domain: [n - 0.5, -0.5], axis: null },
        color: { scheme: "YlGnBu", reverse: true, domain: [0, farthest], clamp: true },
        marks: [
          n <= 60
            ? Plot.rect(data, { x1: (p) => p.i - 0.5, x2: (p) => p.i + 0.5, y1: (p) => p.j - 0.5, y2: (p) => p.j + 0.5, fill: "distance" })
            : Plot.raster(data.map((p) => p.distance), { width: n, height: n, x1: -0.5, x2: n - 0.5, y1: -0.5, y2: n - 0.5, imageRendering: "pixelated" }),
          few ? Plot.axisY([...shown.keys()], { label: null, tickSize: 0, tickFormat: name }) : null,
          few ? Plot.axisX([...shown.keys()], { label: null, tickSize: 0, tickRotate: -60, tickFormat: name }) : null,
          Plot.tip(data, Plot.pointer({ x: "i", y: "j", maxRadius: 20, title: (p) => `${p.a}\n${p.b}\ndistance ${number(p.distance, 3)}` })),
        ],
      }), pick), "distance between two agents, in spreads");
    },
    table: () => ({ columns: ["agent", "nearest", "distance", "furthest", "its_distance"], rows: shown.map((a) => {
      const list = shown.filter((b) => b !== a).map((b) => [distance(rows[a], rows[b]), agents[b].agent]).sort((p, q) => p[0] - q[0]);
      return [agents[a].agent, list[0][1], list[0][0], list.at(-1)[1], list.at(-1)[0]];
    }) }),
    note: () => "Distance between the coefficients of two agents: dark is alike. Agents are in the order in which they differ most." +
      (shown.length < agents.length ? ` ${shown.length} of ${agents.length.toLocaleString("en")} agents are shown.` : ""),
  });
  return { central: centralFigure, coefficients, distances, matrix };
}

/** The chart's own pointer knows which datum is nearest; a click picks its agent. */
export function clickable(chart, pick) {
  chart?.addEventListener("click", () => {
    if (chart.value?.place !== undefined) pick(chart.value.place);
  });
  return chart;
}
