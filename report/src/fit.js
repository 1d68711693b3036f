// The page of a fit: who gained, who was given which model, and the coefficients of each.
import * as Plot from "@observablehq/plot";
import { outcomeLegend, sortedBars } from "./agents.js";
import { OUTCOMES } from "./colours.js";
import { coefficientFigures } from "./coefficients.js";
import { count, h, interval, number } from "./dom.js";
import { figure, plot } from "./figure.js";
import { closing, opening, provenance, tiles } from "./frame.js";

const MEASURES = { mse: "Mean squared error", log_loss: "Log loss", td_error: "Squared TD error" };

// Coverage of the intervals of gains; results of older versions have 90 %.
const level = (result) => `${number(100 * (result.score?.level ?? 0.9), 4)} %`;

// Agents that joined a centre have its model of an unseen agent beside their own.
const third = (result) => (result.joined ? "centre" : "pooled");

const isStream = (result) => result.manifest.spec.solver === "stream";

function fitTiles(result) {
  const { score, verdicts, manifest } = result;
  const list = [["Agents", String(result.agents.length), `${count(result.rows, "row")}, ${count(result.columns, "column")}`]];
  if (score) {
    const loss = score[score.measure];
    const on = isStream(result) ? "predicted before learning" : "held-out rows";
    list.push([`${MEASURES[score.measure]}, ${on}`, number(loss.given), `independent ${number(loss.alone)}, ${third(result)} ${number(loss.pooled)}`]);
    if (score.r2) list.push([`R², ${on}`, number(score.r2.given, 3), `independent ${number(score.r2.alone, 3)}, ${third(result)} ${number(score.r2.pooled, 3)}`]);
    if (score.accuracy) list.push([`Accuracy, ${on}`, number(score.accuracy.given, 3), `independent ${number(score.accuracy.alone, 3)}, ${third(result)} ${number(score.accuracy.pooled, 3)}`]);
    if (score.auc) list.push([`AUC, ${on}`, number(score.auc.given, 3), `independent ${number(score.auc.alone, 3)}, ${third(result)} ${number(score.auc.pooled, 3)}`]);
    if (score.brier) list.push([`Brier score, ${on}`, number(score.brier.given, 3), `independent ${number(score.brier.alone, 3)}, ${third(result)} ${number(score.brier.pooled, 3)}`]);
    list.push(["Agents that gained", `${verdicts.gained} of ${result.agents.length}`, `${verdicts.even} even, ${verdicts.lost} lost${Number.isFinite(result.expected_to_gain) ? `; an estimated ${number(result.expected_to_gain, 3)} gain` : ""}`]);
  } else {
    list.push(["Score", "none", manifest.complete === false ? "the fit was not scored" : ""]);
  }
  return tiles(list);
}

function gainFigure(result) {
  const rows = [...result.agents].sort((a, b) => b.gain.mean - a.gain.mean);
  return figure({
    id: "gain",
    title: "What each agent gained",
    controls: [outcomeLegend()],
    draw: (width) => sortedBars(width, "Error alone minus error given, by agent", rows.map((a) => ({
      name: a.agent, value: a.gain.mean ?? NaN, lo: a.gain.lo ?? NaN, hi: a.gain.hi ?? NaN, outcome: a.verdict, more: `${a.given}${a.why ? `: ${a.why}` : ""}`,
    })), { base: 0, axis: "independent error − chosen error" }),
    table: () => ({
      columns: ["agent", "rows", "gain", "lo", "hi", "probability", "verdict"],
      rows: rows.map((a) => [a.agent, a.rows, a.gain.mean, a.gain.lo, a.gain.hi, a.probability, a.verdict]),
    }),
    note: () => `On ${isStream(result) ? "rows before they were learnt from" : `held-out rows (${result.score.how})`}, ${result.joined ? "from the posterior of each agent's coefficients" : "estimated from all agents together (empirical Bayes)"}, with ${level(result)} intervals. ` +
      "An agent gained or lost where its interval excludes 0 and the gain is at least 1 % of its error.",
  });
}

function scoreFigure(result) {
  const data = result.agents.filter((a) => Number.isFinite(a.score.alone) && Number.isFinite(a.score.given));
  return figure({
    id: "scores",
    title: "Independent and chosen models",
    controls: [outcomeLegend()],
    draw: (width) => {
      if (!data.length) return null;
      const ends = data.flatMap((a) => [a.score.alone, a.score.given]);
      const domain = [Math.min(...ends), Math.max(...ends)];
      return plot(width, "Error of each agent's chosen model against that of its independent model", {
        height: Math.min(420, width), grid: true,
        x: { label: "error of the independent model", domain, nice: true }, y: { label: "error of the chosen model", domain, nice: true },
        color: OUTCOMES,
        marks: [
          Plot.line([domain, domain].map((_, i) => [domain[i], domain[i]]), { stroke: "currentColor", strokeOpacity: 0.5 }),
          Plot.dot(data, { x: (a) => a.score.alone, y: (a) => a.score.given, r: (a) => a.rows, fill: "verdict", fillOpacity: 0.75 }),
          Plot.tip(data, Plot.pointer({ x: (a) => a.score.alone, y: (a) => a.score.given,
            title: (a) => `${a.agent}\n${count(a.rows, "row")}\nalone ${number(a.score.alone)}\ngiven ${number(a.score.given)} (${a.given})\n${a.verdict}` })),
        ],
        r: { range: [2, data.length > 100 ? 8 : 12] },
      });
    },
    table: () => ({
      columns: ["agent", "rows", "chosen", "personalised", "independent", third(result)],
      rows: result.agents.map((a) => [a.agent, a.rows, a.score.given, a.score.personalised, a.score.alone, a.score.pooled]),
    }),
    note: () => "Below the line: better together. The larger the dot, the more rows.",
  });
}

/** The reliability diagram of the chosen models. */
function calibrationFigure(result) {
  const { score, model } = result;
  const data = score.calibration ?? [];
  const of = model.classes.length === 2 ? `“${model.classes[1]}”` : "the most probable class";
  return figure({
    id: "calibration",
    title: "Calibration of the chosen models",
    draw: (width) => (data.length ? plot(width, "Observed frequency against predicted probability", {
      height: Math.min(420, width), grid: true,
      x: { label: `predicted probability of ${of}`, domain: [0, 1] }, y: { label: "observed frequency", domain: [0, 1] },
      r: { range: [0, 12], domain: [0, Math.max(...data.map((b) => b.share))] },
      marks: [
        Plot.line([[0, 0], [1, 1]], { stroke: "currentColor", strokeOpacity: 0.5 }),
        Plot.line(data, { x: "predicted", y: "observed", stroke: OUTCOMES.range[0] }),
        Plot.dot(data, { x: "predicted", y: "observed", r: "share", fill: OUTCOMES.range[0], fillOpacity: 0.75 }),
        Plot.tip(data, Plot.pointer({ x: "predicted", y: "observed",
          title: (b) => `predicted ${number(b.predicted, 3)}\nobserved ${number(b.observed, 3)}\n${number(100 * b.share, 3)} % of rows` })),
      ],
    }) : null),
    table: () => ({ columns: ["predicted", "observed", "share"], rows: data.map((b) => [b.predicted, b.observed, b.share]) }),
    note: () => `${isStream(result) ? "Rows before they were learnt from" : "Held-out rows"} by predicted probability, in ten bins. On the line, probabilities are frequencies; calibration error ${number(score.calibration_error.given, 3)}, ` +
      `of the independent models ${number(score.calibration_error.alone, 3)}.`,
  });
}

function givenTable(result) {
  const kinds = ["personalised", "alone", "pooled"];
  const found = kinds.map((kind) => [kind, result.agents.filter((a) => a.given === kind).length]).filter(([, n]) => n > 0);
  const scored = Boolean(result.score);
  const columns = ["agent", "rows", "chosen", ...(scored ? ["verdict", `gain [${level(result)} interval]`] : []), "why"];
  const row = (a) => [a.agent, String(a.rows), a.given, ...(scored ? [a.verdict, `${number(a.gain.mean)} ${interval(a.gain.lo, a.gain.hi)}`] : []), a.why ?? ""];
  const special = result.agents.filter((a) => a.why).length;
  return h("div", { class: "card" },
    h("h3", {}, "Who was given which model, and why"),
    h("p", { class: "note" }, `${found.map(([kind, n]) => `${kind}: ${n}`).join(", ")}. ` +
      (special ? `${count(special, "agent")} with a reason of their own below.` : "No agent needed a reason other than that its personalised model is expected to be best.")),
    h("details", { open: result.agents.length <= 15 }, h("summary", {}, "All agents"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Models given" }, h("table", {},
        h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, result.agents.map((a) => h("tr", {}, row(a).map((text) => h("td", {}, text)))))))));
}

export function fitPage(result) {
  const { manifest, model, score } = result;
  const eyebrow = ["affpcl fit", (manifest.spec.files ?? []).join(", ")].filter(Boolean).join(" · ");
  const title = `${model.target}: one model per agent${model.classes.length ? `, ${model.classes.length} classes` : ""}`;
  const figures = score && result.agents.length ? [gainFigure(result), scoreFigure(result)] : [];
  const [coefficients, distances, matrix] = coefficientFigures(result).map((f) => f.node);
  return [
    opening({ eyebrow, title, headline: result.headline }),
    result.notes?.length ? h("p", { class: "note" }, `Notes: ${result.notes.join("; ")}.`) : null,
    fitTiles(result),
    h("section", {}, h("h2", {}, "Who gained"),
      figures.length ? [figures[0].node, h("div", { class: "pair" }, figures[1].node, distances)] : [],
      score?.calibration?.length ? calibrationFigure(result).node : [], givenTable(result)),
    coefficients ? h("section", {}, h("h2", {}, "What was learnt"), coefficients, matrix) : null,
    provenance(result), closing(),
  ].filter(Boolean);
}
