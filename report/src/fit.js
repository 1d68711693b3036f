// The page of a fit: who gained, how well it predicts, and what was learnt.
import * as Plot from "@observablehq/plot";
import { outcomeLegend, sortedBars } from "./agents.js";
import { agentCard, gainShare } from "./one_agent.js";
import { clickable, coefficientFigures, readCoefficients } from "./coefficients.js";
import { OUTCOMES } from "./colours.js";
import { cloud, logDomain, MANY } from "./density.js";
import { count, h, interval, number } from "./dom.js";
import { figure } from "./figure.js";
import { closing, opening, provenance, tiles } from "./frame.js";
import { predictionFigures } from "./predictions.js";
import { numeric, sortable, text } from "./table.js";

const MEASURES = { mse: "mean squared error", log_loss: "log loss", td_error: "squared TD error", deviance: "deviance" };
const PAGE = 25;  // agents on a page of the table

// Coverage of the intervals of gains; results of older versions have 90 %.
const level = (result) => `${number(100 * (result.score?.level ?? 0.9), 4)} %`;

// Agents that joined a centre have its model of an unseen agent beside their own.
const third = (result) => (result.joined ? "centre" : "pooled");

const isStream = (result) => result.manifest.spec.solver === "stream";
const heldOut = (result) => (isStream(result) ? "rows before they were learnt from" : "held-out rows");
const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** "19.8 % below independent 181.9, 37 % below pooled 233". */
function besides(loss, third, shown = (v) => v) {
  const one = (name, other) => {
    const [to, from] = [shown(loss.given), shown(other)];
    return from > 0 ? `${number(100 * Math.abs(1 - to / from), 3)} % ${to <= from ? "below" : "above"} ${name} ${number(from)}` : `${name} ${number(from)}`;
  };
  return `${one("independent", loss.alone)}, ${one(third, loss.pooled)}`;
}

function fitTiles(result) {
  const { score, verdicts, manifest, fitted } = result;
  const list = [["Agents", fitted.toLocaleString("en"), `${count(result.rows, "row")}, ${count(result.columns, "column")}`]];
  if (score) {
    const loss = score[score.measure];
    const on = isStream(result) ? "predicted before learning" : "held-out rows";
    const scored = (name, of) => list.push([`${name}, ${on}`, number(of.given, 3), `independent ${number(of.alone, 3)}, ${third(result)} ${number(of.pooled, 3)}`]);
    if (score.measure === "mse") list.push([`RMSE, ${on}`, number(Math.sqrt(loss.given)), besides(loss, third(result), Math.sqrt)]);
    list.push([`${capital(MEASURES[score.measure])}, ${on}`, number(loss.given), besides(loss, third(result))]);
    if (score.r2) scored("R²", score.r2);
    if (score.accuracy) scored("Accuracy", score.accuracy);
    if (score.auc) scored("AUC", score.auc);
    if (score.brier) scored("Brier score", score.brier);
    list.push(["Agents that gained", `${verdicts.gained.toLocaleString("en")} of ${fitted.toLocaleString("en")}`,
      `${verdicts.even} even, ${verdicts.lost} lost${Number.isFinite(result.expected_to_gain) ? `; an estimated ${number(result.expected_to_gain, 3)} gain` : ""}`]);
  } else {
    list.push(["Score", "none", manifest.complete === false ? "the fit was not scored" : ""]);
  }
  return tiles(list);
}

/** The result in one sentence without brackets; null where nothing was scored or there is one agent. */
export function plainWords(result) {
  const { score, fitted } = result;
  const loss = score?.[score.measure];
  if (!loss || fitted < 2 || !(loss.alone > 0)) return null;
  const change = 100 * (loss.given / loss.alone - 1);
  const share = Number.isFinite(result.expected_to_gain) ? `; an estimated ${number((100 * result.expected_to_gain) / fitted, 3)}\u00a0% of ${fitted.toLocaleString("en")} agents gain` : "";
  return `Learning together ${change <= 0 ? "lowers" : "raises"} the ${MEASURES[score.measure]} on ${heldOut(result)} by ${number(Math.abs(change), 3)}\u00a0%${share}.`;
}

const thinned = (result) => (result.agents.length < result.fitted
  ? ` ${result.agents.length.toLocaleString("en")} of ${result.fitted.toLocaleString("en")} agents are on this page: those with a reason of their own first, the others evenly spaced in the order of their gain; summary.json holds all.` : "");

function gainFigure(result, pick) {
  const rows = [...result.agents].sort((a, b) => b.gain.mean - a.gain.mean);
  return figure({
    id: "gain",
    title: "What each agent gained",
    controls: [outcomeLegend()],
    draw: (width) => clickable(sortedBars(width, "Independent error minus chosen error, by agent", rows.map((a) => ({
      name: a.agent, place: a.place, value: a.gain.mean ?? NaN, lo: a.gain.lo ?? NaN, hi: a.gain.hi ?? NaN, outcome: a.verdict, more: `${a.given}${a.why ? `: ${a.why}` : ""}`,
    })), { base: 0, axis: "gain: independent error − chosen error" }), pick),
    table: () => ({
      columns: ["agent", "rows", "gain", "lo", "hi", "per_cent", "probability", "verdict"],
      rows: rows.map((a) => [a.agent, a.rows, a.gain.mean, a.gain.lo, a.gain.hi, gainShare(a), a.probability, a.verdict]),
    }),
    note: () => `On ${isStream(result) ? "rows before they were learnt from" : `held-out rows (${result.score.how})`}, ${result.joined ? "from the posterior of each agent's coefficients" : "estimated from all agents together (empirical Bayes)"}` +
      `${rows.length > MANY ? "" : `, with ${level(result)} intervals`}. An agent gained or lost where its ${level(result)} interval excludes 0 and the gain is at least 1 % of its error.${thinned(result)}`,
  });
}

function scoreFigure(result, pick) {
  const data = result.agents.map((a) => ({ place: a.place, agent: a.agent, rows: a.rows, verdict: a.verdict, given: a.given, alone: a.score.alone, chosen: a.score.given }));
  const positive = data.filter((a) => a.alone > 0 && a.chosen > 0);
  const ends = logDomain(positive.flatMap((a) => [a.alone, a.chosen]));
  const log = positive.length > 20 && ends[1] / ends[0] > 20;
  return figure({
    id: "scores",
    title: "Independent and chosen models",
    controls: [outcomeLegend()],
    draw: (width) => {
      const shown = log ? positive : data;
      const all = shown.flatMap((a) => [a.alone, a.chosen]).filter(Number.isFinite);
      if (!all.length) return null;
      const domain = log ? ends : [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
      const scale = { type: log ? "log" : "linear", domain, nice: !log, ticks: width < 500 ? 3 : 5, tickFormat: (v) => number(v, 3) };
      return clickable(cloud(width, "Error of each agent's chosen model against that of its independent model", shown, {
        x: "alone", y: "chosen",
        options: {
          height: Math.min(420, width), grid: true,
          x: { label: "error of the independent model", ...scale }, y: { label: "error of the chosen model", ...scale },
          color: OUTCOMES, r: { range: [2, data.length > 100 ? 8 : 12] },
        },
        under: () => [Plot.line([[domain[0], domain[0]], [domain[1], domain[1]]], { stroke: "currentColor", strokeOpacity: 0.5 })],
        marks: (few) => [
          Plot.dot(few, { x: "alone", y: "chosen", r: "rows", fill: "verdict", fillOpacity: 0.75 }),
          Plot.tip(few, Plot.pointer({ x: "alone", y: "chosen",
            title: (a) => `${a.agent}\n${count(a.rows, "row")}\nindependent ${number(a.alone)}\nchosen ${number(a.chosen)} (${a.given})\n${a.verdict}` })),
        ],
      }), pick);
    },
    table: () => ({
      columns: ["agent", "rows", "chosen", "personalised", "independent", third(result)],
      rows: result.agents.map((a) => [a.agent, a.rows, a.score.given, a.score.personalised, a.score.alone, a.score.pooled]),
    }),
    note: () => `Below the line: better together.${data.length > 1000 ? "" : " The larger the dot, the more rows."}${log ? " Logarithmic axes." : ""}`,
  });
}

/** All agents in a table that can be searched; those with a reason of their own on top. */
function agentsTable(result, card) {
  const scored = Boolean(result.score);
  const order = [...result.agents].sort((a, b) => Boolean(b.why) - Boolean(a.why) || (scored ? b.gain.mean - a.gain.mean : 0));
  const columns = [
    ["agent", (a) => ({ shown: h("button", { type: "button", class: "link", onclick: () => card.pick(a.place) }, a.agent), by: a.agent, tone: "name" })],
    ["rows", (a) => numeric(a.rows, a.rows.toLocaleString("en"))],
    ["chosen", (a) => text(a.given)],
    ...(scored ? [
      ["verdict", (a) => ({ shown: a.verdict, by: a.verdict, tone: a.verdict })],
      [`gain [${level(result)} interval]`, (a) => numeric(a.gain.mean, `${number(a.gain.mean)} ${interval(a.gain.lo, a.gain.hi)}`)],
      ["gain, %", (a) => numeric(gainShare(a))],
      ["error", (a) => numeric(a.score.given)],
      ["independent", (a) => numeric(a.score.alone)],
    ] : []),
    ...(result.agents.some((a) => a.why) ? [["why", (a) => text(a.why)]] : []),
  ];
  const kinds = ["personalised", "independent", "pooled"].map((kind) => [kind, result.agents.filter((a) => a.given === kind).length]).filter(([, n]) => n > 0);
  const special = result.agents.filter((a) => a.why).length;
  const table = sortable("All agents", columns, () => order, -1, { page: PAGE, search: (a) => `${a.agent} ${a.given} ${a.verdict ?? ""} ${a.why}`, down: [1, 4, 5] });
  return h("div", { class: "card", id: "agents" },
    h("h3", {}, "All agents"),
    h("p", { class: "note" }, `${kinds.map(([kind, n]) => `${kind}: ${n.toLocaleString("en")}`).join(", ")}. ` +
      (special ? `${count(special, "agent")} with a reason of their own come first.` : "No agent needed a reason other than that its personalised model is expected to be best.") + thinned(result)),
    table.node);
}

export function fitPage(result) {
  const { manifest, model, score } = result;
  const eyebrow = ["affpcl fit", (manifest.spec.files ?? []).join(", ")].filter(Boolean).join(" · ");
  const title = `${model.target}: one model per agent${model.classes.length ? `, ${model.classes.length} classes` : ""}`;
  const plain = plainWords(result);
  const known = readCoefficients(result);
  const card = agentCard(result, known);
  const gains = score && result.agents.length ? [gainFigure(result, card.pick), scoreFigure(result, card.pick)] : [];
  const learnt = coefficientFigures(result, known, card.pick);
  const predictions = predictionFigures(result);
  return [
    opening({ eyebrow, title, headline: plain ?? `${result.headline}.`, detail: plain ? `${capital(result.headline)}.` : null }),
    result.notes?.length ? h("p", { class: "note" }, `Notes: ${result.notes.join("; ")}.`) : null,
    fitTiles(result),
    h("section", {}, h("h2", {}, "Who gained"),
      gains.length ? [gains[0].node, h("div", { class: "pair" }, gains[1].node, learnt?.distances.node)] : [],
      agentsTable(result, card), card.node),
    predictions.length ? h("section", {}, h("h2", {}, "How well it predicts"), h("div", { class: "pair" }, predictions.map((f) => f.node))) : null,
    learnt ? h("section", {}, h("h2", {}, "What was learnt"), learnt.central.node, learnt.coefficients.node, learnt.matrix.node) : null,
    provenance(result), closing(),
  ].filter(Boolean);
}
