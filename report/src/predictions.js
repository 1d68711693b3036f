// How well the chosen models predict held-out rows: predicted against found, residuals, calibration, confusion.
import * as Plot from "@observablehq/plot";
import { counts as shades, OUTCOMES } from "./colours.js";
import { count, number } from "./dom.js";
import { figure, plot, withKey } from "./figure.js";

const LETTERS = 12;  // classes whose cells have numbers

const repeated = (score) => (score.repeats > 1 ? ` Each row counts once in each of the ${score.repeats} repeats.` : "");

function predictedFigure({ score, model }) {
  const { lo, hi, cells, rows } = score.predicted;
  const step = (hi - lo) / cells;
  const found = rows.map((n, k) => ({ n, i: Math.floor(k / cells), j: k % cells })).filter((c) => c.n > 0)
    .map((c) => ({ ...c, x1: lo + c.i * step, x2: lo + (c.i + 1) * step, y1: lo + c.j * step, y2: lo + (c.j + 1) * step }));
  const within = (name) => [Math.min(...found.map((c) => c[`${name}1`])), Math.max(...found.map((c) => c[`${name}2`]))];
  return figure({
    id: "predicted",
    title: "Predicted and found",
    draw: (width) => {
      if (!found.length) return null;
      const [x, y] = [within("x"), within("y")];
      const line = [Math.max(x[0], y[0]), Math.min(x[1], y[1])];
      return withKey(plot(width, "Held-out rows by predicted and found value", {
        height: Math.min(380, width), grid: true,
        x: { label: `predicted ${model.target}`, domain: x }, y: { label: `found ${model.target}`, domain: y },
        color: shades(Math.max(...found.map((c) => c.n))),
        marks: [
          Plot.rect(found, { x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: "n" }),
          line[0] < line[1] ? Plot.line(line.map((v) => [v, v]), { stroke: "currentColor", strokeDasharray: "5 4" }) : null,
          Plot.tip(found, Plot.pointer({ x: (c) => (c.x1 + c.x2) / 2, y: (c) => (c.y1 + c.y2) / 2,
            title: (c) => `predicted ${number(c.x1, 3)} to ${number(c.x2, 3)}\nfound ${number(c.y1, 3)} to ${number(c.y2, 3)}\n${count(c.n, "row")}` })),
        ],
      }), "rows");
    },
    table: () => ({ columns: ["predicted_from", "predicted_to", "found_from", "found_to", "rows"], rows: found.map((c) => [c.x1, c.x2, c.y1, c.y2, c.n]) }),
    note: () => `Held-out rows by the chosen models; on the dashed line they are equal. The outermost cells also hold what lies outside.${repeated(score)}`,
  });
}

function residualFigure({ score, model }) {
  const { from, width: step, rows } = score.residuals;
  const all = rows.reduce((a, b) => a + b, 0);
  const bins = rows.map((n, k) => ({ n, share: n / all, x1: from + k * step, x2: from + (k + 1) * step }));
  return figure({
    id: "residuals",
    title: "Residuals",
    draw: (width) => plot(width, "Held-out rows by residual", {
      height: Math.min(380, width),
      x: { label: `found − predicted ${model.target}` }, y: { label: "rows, %", grid: true, percent: true },
      marks: [
        Plot.rect(bins, { x1: "x1", x2: "x2", y1: 0, y2: "share", fill: "var(--gained)", inset: 0.4 }),
        Plot.ruleX([0], { stroke: "currentColor", strokeDasharray: "5 4" }),
        Plot.ruleY([0], { stroke: "currentColor" }),
        Plot.tip(bins, Plot.pointerX({ x: (b) => (b.x1 + b.x2) / 2, y: "share", title: (b) => `${number(b.x1, 3)} to ${number(b.x2, 3)}\n${number(100 * b.share, 3)} % of rows` })),
      ],
    }),
    table: () => ({ columns: ["from", "to", "share"], rows: bins.map((b) => [b.x1, b.x2, b.share]) }),
    note: () => `Found minus predicted on held-out rows. The first and the last bar also hold what lies outside. RMSE ${number(Math.sqrt(score.mse?.given ?? NaN))}.`.replace(" RMSE –.", ""),
  });
}

/** The reliability diagram of the chosen models. */
function calibrationFigure({ score, model, manifest }) {
  const data = score.calibration;
  const of = model.classes.length === 2 ? `“${model.classes[1]}”` : "the most probable class";
  const rows = manifest.spec.solver === "stream" ? "Rows before they were learnt from" : "Held-out rows";
  return figure({
    id: "calibration",
    title: "Calibration of the chosen models",
    draw: (width) => plot(width, "Observed frequency against predicted probability", {
      height: Math.min(380, width), grid: true,
      x: { label: `predicted probability of ${of}`, domain: [0, 1] }, y: { label: "observed frequency", domain: [0, 1] },
      r: { range: [0, 12], domain: [0, Math.max(...data.map((b) => b.share))] },
      marks: [
        Plot.line([[0, 0], [1, 1]], { stroke: "currentColor", strokeOpacity: 0.5 }),
        Plot.line(data, { x: "predicted", y: "observed", stroke: OUTCOMES.range[0] }),
        Plot.dot(data, { x: "predicted", y: "observed", r: "share", fill: OUTCOMES.range[0], fillOpacity: 0.75 }),
        Plot.tip(data, Plot.pointer({ x: "predicted", y: "observed",
          title: (b) => `predicted ${number(b.predicted, 3)}\nobserved ${number(b.observed, 3)}\n${number(100 * b.share, 3)} % of rows` })),
      ],
    }),
    table: () => ({ columns: ["predicted", "observed", "share"], rows: data.map((b) => [b.predicted, b.observed, b.share]) }),
    note: () => `${rows} by predicted probability, in ten bins. On the line, probabilities are frequencies; calibration error ${number(score.calibration_error.given, 3)}, ` +
      `of the independent models ${number(score.calibration_error.alone, 3)}.`,
  });
}

function confusionFigure({ score, model }) {
  const { classes } = model;
  const short = (i) => ([...classes[i]].length > 16 ? `${[...classes[i]].slice(0, 15).join("")}…` : classes[i]);
  const data = score.confusion.flatMap((row, i) => {
    const all = row.reduce((a, b) => a + b, 0);
    return row.map((n, j) => ({ i, j, n, share: all ? n / all : 0 }));
  });
  const letters = Math.max(...classes.map((_, i) => [...short(i)].length));
  return figure({
    id: "confusion",
    title: "Classes found and predicted",
    draw: (width) => {
      const side = Math.min(width, 120 + 80 * classes.length, 560);
      return withKey(plot(side, "Shares of each class's rows by the most probable class", {
        height: 50 + Math.min(300, 44 * classes.length) + (classes.length > 4 ? 6 * letters : 0), marginLeft: 20 + 7 * letters, marginTop: 10, marginBottom: 40 + (classes.length > 4 ? 6 * letters : 0),
        x: { label: "most probable class", type: "band", domain: classes.map((_, i) => i), tickFormat: short, tickSize: 0, tickRotate: classes.length > 4 ? -60 : 0 },
        y: { label: "class", type: "band", domain: classes.map((_, i) => i), tickFormat: short, tickSize: 0 },
        color: { type: "linear", scheme: "Blues", domain: [0, 1] },
        marks: [
          Plot.cell(data, { x: "j", y: "i", fill: "share", inset: 0.5 }),
          classes.length <= LETTERS ? Plot.text(data, { x: "j", y: "i", text: (c) => `${number(100 * c.share, 2)} %`, fill: (c) => (c.share > 0.55 ? "white" : "#111") }) : null,
          Plot.tip(data, Plot.pointer({ x: "j", y: "i", title: (c) => `${classes[c.i]} taken for ${classes[c.j]}\n${number(100 * c.share, 3)} % of its rows` })),
        ],
      }), "share of the class's rows");
    },
    table: () => ({ columns: ["class", "most_probable", "rows", "share"], rows: data.map((c) => [classes[c.i], classes[c.j], c.n, c.share]) }),
    note: () => `Each line adds up to 100 %. Held-out rows by the chosen models; accuracy ${number(score.accuracy.given, 3)}.${repeated(score)}`,
  });
}

export function predictionFigures(result) {
  const { score } = result;
  return [
    score?.predicted ? predictedFigure(result) : null, score?.residuals ? residualFigure(result) : null,
    score?.calibration?.length ? calibrationFigure(result) : null, score?.confusion?.length ? confusionFigure(result) : null,
  ].filter(Boolean);
}
