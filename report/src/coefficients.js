// Coefficients of a fit, agent by agent: one at a time with errors, all as distances to the centre and to each other.
import * as Plot from "@observablehq/plot";
import { OUTCOMES } from "./colours.js";
import { unpack } from "./data.js";
import { choice, h, number } from "./dom.js";
import { figure, plot } from "./figure.js";

const NORMAL_90 = 1.6449;

/** x[agent][coefficient] and the like, of one channel. */
function unpackChannel(channel, width) {
  const rows = (packed) => {
    const all = unpack(packed);
    return Array.from({ length: all.length / width }, (_, i) => all.subarray(i * width, (i + 1) * width));
  };
  return { x: rows(channel.x), se: rows(channel.se), centre: unpack(channel.centre), centreSe: unpack(channel.centre_se), between: unpack(channel.between) };
}

/** Deviations from the centre in units of the spread between agents, over all channels; coefficients that do not vary are left out. */
function deviations(channels) {
  return channels[0].x.map((_, agent) => channels.flatMap(({ x, centre, between }) =>
    [...between.keys()].filter((c) => between[c] > 1e-6 * Math.max(...between)).map((c) => (x[agent][c] - centre[c]) / between[c])));
}

const distance = (a, b) => Math.sqrt(a.reduce((sum, value, c) => sum + (value - (b ? b[c] : 0)) ** 2, 0) / a.length);

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

/** A stream has no standard errors. */
const hasErrors = ({ centreSe }) => Number.isFinite(centreSe[0]);

/** The coefficient in which agents differ most, for what is known of it; the intercept only where there is no other. */
function mostVaried(names, channel) {
  const { x, se, centre, between } = channel;
  const told = (c) => (hasErrors(channel) ? Math.hypot(...x.map((row) => row[c] - centre[c])) / Math.hypot(...se.map((row) => row[c])) : between[c]);
  const candidates = [...names.keys()].filter((c) => names[c] !== "intercept");
  return candidates.reduce((best, c) => (told(c) > told(best) ? c : best), candidates[0] ?? 0);
}

/** A class or an outcome each; one channel alone is of the second class, or of all outcomes together. */
function namesOf(model) {
  if (model.channels.length === 1) return [model.classes[1] ?? model.target];
  return model.outcomes.length ? model.outcomes : model.classes;
}

export function coefficientFigures(result) {
  const { model, agents, score } = result;
  const values = result.manifest.spec.task === "td";  // of states: columns as they are
  const names = model.names;
  if (!names.length || !agents.length) return [];
  const channels = model.channels.map((channel) => unpackChannel(channel, names.length));
  const channelNames = namesOf(model);
  const intervals = hasErrors(channels[0]);
  const left = model.all > names.length ? ` The ${names.length} of ${model.all} coefficients in which agents differ most are here; model.json holds all.` : "";
  const rows = deviations(channels);
  const varies = rows[0].length > 0;
  const view = { coefficient: mostVaried(names, channels[0]), channel: 0 };

  const one = () => {
    const { x, se, centre } = channels[view.channel];
    return agents.map((a, i) => ({ agent: a.agent, rows: a.rows, given: a.given, value: x[i][view.coefficient], se: se[i][view.coefficient], off: x[i][view.coefficient] - centre[view.coefficient] }))
      .sort((a, b) => a.value - b.value);
  };
  const coefficients = figure({
    id: "coefficients",
    title: "A coefficient, agent by agent",
    controls: [
      choice("Coefficient", names.map((name, i) => [i, name]), view.coefficient, (i) => { view.coefficient = Number(i); coefficients.update(); }),
      channels.length > 1 ? choice(model.outcomes.length ? "Outcome" : "Class", channelNames.map((name, i) => [i, name]), 0, (i) => { view.channel = Number(i); coefficients.update(); }) : null,
    ],
    draw: (width) => {
      const data = one();
      const few = data.length <= 40;
      const { centre, centreSe } = channels[view.channel];
      const [c, ce] = [centre[view.coefficient], centreSe[view.coefficient]];
      const place = new Map(data.map((r, i) => [r, i]));
      const lo = (r) => r.value - NORMAL_90 * r.se, hi = (r) => r.value + NORMAL_90 * r.se;
      const letters = Math.min(22, Math.max(...data.map((r) => [...r.agent].length)));
      const slanted = few && letters * 7 > (width - 70) / data.length;
      const bottom = slanted ? 30 + letters * 5 : 36;
      return plot(width, `Coefficient of ${names[view.coefficient]} for each agent${intervals ? ", with 90 % intervals" : ""}`, {
        height: 280 + bottom, marginBottom: bottom,
        x: { domain: [-0.5, data.length - 0.5], axis: null },
        y: { label: values ? "coefficient" : `effect of one standard deviation${model.classes.length ? "" : ` on ${channelNames[view.channel]}`}`, grid: true, nice: true },
        marks: [
          Plot.rect(intervals ? [0] : [], { x1: -0.5, x2: data.length - 0.5, y1: c - NORMAL_90 * ce, y2: c + NORMAL_90 * ce, fill: "var(--alone)", fillOpacity: 0.2 }),
          Plot.ruleY([c], { stroke: "var(--alone)", strokeDasharray: "5 4" }),
          Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.6 }),
          Plot.ruleX(intervals ? data : [], { x: (r) => place.get(r), y1: lo, y2: hi, stroke: "var(--gained)", strokeOpacity: few ? 0.9 : 0.45 }),
          Plot.dot(data, { x: (r) => place.get(r), y: "value", fill: "var(--gained)", r: few ? 4 : 2.5 }),
          few ? Plot.axisX(data.map((_, i) => i), { anchor: "bottom", label: null, tickSize: 0, tickFormat: (i) => [...data[i].agent].slice(0, 22).join(""), tickRotate: slanted ? -60 : 0 }) : null,
          Plot.tip(data, Plot.pointerX({ x: (r) => place.get(r), y: "value", title: (r) => `${r.agent} (${r.given}, ${r.rows} rows)\n${number(r.value)}${intervals ? ` ± ${number(NORMAL_90 * r.se, 3)}` : ""}` })),
        ],
      });
    },
    table: () => ({
      columns: ["agent", "coefficient", "value", ...(intervals ? ["se"] : []), "from_centre"],
      rows: one().map((r) => [r.agent, names[view.coefficient], r.value, ...(intervals ? [r.se] : []), r.off]),
    }),
    note: () => (values ? "Columns as they are; of named states the intercept is the first one's value, the others are differences to it. "
      : `Standardised column${intervals ? ", 90 % intervals" : ""}. `) +
      (intervals ? "Dashed: the centre, with the interval of an agent never seen." : "Dashed: the centre. A stream has no standard errors of coefficients.") + left,
  });

  const far = () => agents.map((a, i) => ({ agent: a.agent, distance: distance(rows[i]), gain: a.gain?.mean ?? NaN, lo: a.gain?.lo ?? NaN, hi: a.gain?.hi ?? NaN, verdict: a.verdict ?? "even" }));
  const distances = figure({
    id: "distance",
    title: "Distance to the centre, and gain",
    draw: (width) => {
      if (!varies || !score) return null;
      const data = far().filter((r) => Number.isFinite(r.gain));
      return plot(width, "Distance of each agent's coefficients to the centre, against its gain", {
        height: 340,
        x: { label: "distance to the centre, in spreads between agents", zero: true, nice: true },
        y: { label: "error alone − error given", grid: true, nice: true },
        color: OUTCOMES,
        marks: [
          Plot.ruleY([0], { stroke: "currentColor" }),
          Plot.ruleX(data.length <= 300 ? data : [], { x: "distance", y1: "lo", y2: "hi", stroke: "verdict", strokeOpacity: 0.35 }),
          Plot.dot(data, { x: "distance", y: "gain", fill: "verdict", r: data.length > 100 ? 3 : 4.5, fillOpacity: 0.85 }),
          Plot.tip(data, Plot.pointer({ x: "distance", y: "gain", title: (r) => `${r.agent}\ndistance ${number(r.distance, 3)}\ngain ${number(r.gain)}\n${r.verdict}` })),
        ],
      });
    },
    table: () => ({ columns: ["agent", "distance", "gain", "lo", "hi"], rows: far().map((r) => [r.agent, r.distance, r.gain, r.lo, r.hi]) }),
    note: () => `Root mean square over coefficients, each in units of its spread between agents.${left}`,
  });

  const order = varies ? likeness(rows) : [];
  const shown = order.length <= 400 ? order : order.filter((_, i) => i % Math.ceil(order.length / 400) === 0);
  const pairs = () => shown.flatMap((a, j) => shown.map((b, i) => ({ i, j, a: agents[a].agent, b: agents[b].agent, distance: distance(rows[a], rows[b]) })));
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
      const mid = data.map((p) => p.distance).sort((p, q) => p - q);
      return plot(side, "Distances between the coefficients of all pairs of agents", {
        height: side - left + 30 + (few ? 6 * letters : 0), marginLeft: left, marginTop: 10, marginBottom: few ? 10 + 6 * letters : 20,
        x: { domain: [-0.5, n - 0.5], axis: null }, y: { domain: [n - 0.5, -0.5], axis: null },
        color: { scheme: "YlGnBu", reverse: true, domain: [0, mid[mid.length - 1]] },
        marks: [
          n <= 60
            ? Plot.rect(data, { x1: (p) => p.i - 0.5, x2: (p) => p.i + 0.5, y1: (p) => p.j - 0.5, y2: (p) => p.j + 0.5, fill: "distance" })
            : Plot.raster(data.map((p) => p.distance), { width: n, height: n, x1: -0.5, x2: n - 0.5, y1: -0.5, y2: n - 0.5, imageRendering: "pixelated" }),
          few ? Plot.axisY([...shown.keys()], { label: null, tickSize: 0, tickFormat: (i) => [...agents[shown[i]].agent].slice(0, 18).join("") }) : null,
          few ? Plot.axisX([...shown.keys()], { label: null, tickSize: 0, tickRotate: -60, tickFormat: (i) => [...agents[shown[i]].agent].slice(0, 18).join("") }) : null,
          Plot.tip(data, Plot.pointer({ x: "i", y: "j", maxRadius: 20, title: (p) => `${p.a}\n${p.b}\ndistance ${number(p.distance, 3)}` })),
        ],
      });
    },
    table: () => ({ columns: ["agent", "nearest", "distance", "furthest", "its_distance"], rows: shown.map((a) => {
      const list = shown.filter((b) => b !== a).map((b) => [distance(rows[a], rows[b]), agents[b].agent]).sort((p, q) => p[0] - q[0]);
      return [agents[a].agent, list[0][1], list[0][0], list.at(-1)[1], list.at(-1)[0]];
    }) }),
    note: () => "Distance between the coefficients of two agents: dark is alike. Agents are in the order in which they differ most." +
      (shown.length < agents.length ? ` ${shown.length} of ${agents.length} agents are shown.` : ""),
  });
  return [coefficients, distances, matrix];
}
