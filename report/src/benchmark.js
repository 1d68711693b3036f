// The page of the benchmark: methods over all cells, then every cell, in tables that can be sorted.
import { choice, count, h, interval, number } from "./dom.js";
import { closing, opening, provenance, tiles } from "./frame.js";
import { numeric, sortable, text } from "./table.js";

const withRange = (e) => numeric(e?.mean ?? null, e ? `${number(e.mean, 3)} ${interval(e.lo, e.hi)}` : "–");

function ratio(row) {
  if (row.refused) return { shown: "refused", by: Infinity };
  const e = row.vs_independent;
  const tone = e.hi !== null && e.hi < 1 ? "gained" : e.lo !== null && e.lo > 1 ? "lost" : "";
  return { ...withRange(e), tone };
}

const share = (x) => numeric(x, x === null || x === undefined ? "–" : `${number(100 * x, 2)} %`);
const cellOf = (row) => row.problem + (row.participation < 1 ? `, ${number(100 * row.participation, 2)} % present` : "");

export function benchmarkPage(result) {
  const state = { tuned: false, problem: "" };
  const methods = () => result.methods.filter((m) => m.tuned === state.tuned);
  const rows = () => result.rows.filter((r) => r.tuned === state.tuned && (!state.problem || r.problem === state.problem));
  const overall = sortable("Methods over all cells", [
    ["method", (m) => text(m.method)],
    ["mean rank [90 % interval]", (m) => withRange(m.rank)],
    ["cells with a gain", (m) => numeric(m.gains, `${m.gains} of ${m.cells}`)],
    ["cells with harm", (m) => numeric(m.harms, `${m.harms} of ${m.cells}`)],
    ["best error vs independent", (m) => numeric(m.best, `${number(m.best, 3)} (${m.best_cell})`)],
    ["worst", (m) => numeric(m.worst, `${number(m.worst, 3)} (${m.worst_cell})`)],
    ["worst agent", (m) => numeric(m.worst_agent)],
    ["agents harmed", (m) => share(m.harmed)],
    ["seconds", (m) => numeric(m.seconds)],
  ], methods, 1);
  const cells = sortable("Every method in every cell", [
    ["problem", (r) => text(cellOf(r))],
    ["level", (r) => numeric(r.level)],
    ["method", (r) => text(r.method)],
    ["error vs independent [90 % interval]", ratio],
    ["worst agent", (r) => numeric(r.worst_agent ?? null)],
    ["agents harmed", (r) => share(r.harmed)],
    ["diverged", (r) => numeric(r.diverged ?? 0, r.refused ? "–" : `${r.diverged} of ${r.replicates}`)],
    ["numbers sent a round", (r) => numeric(r.sent ?? null)],
    ["seconds", (r) => numeric(r.seconds ?? null)],
    ["parameters", (r) => text(r.refused ?? r.parameters)],
  ], rows, 3);
  const refill = () => (overall.fill(), cells.fill());
  const problems = [...new Set(result.rows.map((r) => r.problem))];
  const best = methods()[0];
  const both = result.methods.some((m) => m.tuned);
  return [
    opening({ eyebrow: "affpcl · benchmark", title: "Methods of personalised federated learning on equal terms",
      headline: `${best.method} has the best mean rank with default parameters: ${number(best.rank.mean, 2)} of ${methods().length}.` }),
    tiles([["Methods", String(methods().length)], ["Problems", String(problems.length)],
      ["Cells", String(new Set(result.rows.map((r) => `${cellOf(r)} ${r.level}`)).size), "problem, level and participation"],
      ["Seconds", number(result.manifest.seconds, 3)]]),
    h("section", {}, h("h2", {}, "All cells"),
      both ? h("div", { class: "bar" }, choice("Parameters", [["default", "default"], ["tuned", "tuned on other systems"]], "default",
        (value) => { state.tuned = value === "tuned"; refill(); })) : null,
      h("div", { class: "card" }, overall.node,
        h("p", { class: "note" }, "Errors are over those of independent learning on the same samples: below 1 is a gain. A cell gains or is harmed " +
          "where its whole interval lies below or above 1. Ranks are among the methods of a cell, 1 the best. " +
          "all_for_one and all_for_all are given the distances between the true solutions, which no other method has."))),
    h("section", {}, h("h2", {}, "One cell after another"),
      h("div", { class: "bar" }, choice("Problem", [["", `all (${count(problems.length, "problem")})`], ...problems.map((p) => [p, p])], "",
        (value) => { state.problem = value; cells.fill(); })),
      h("div", { class: "card" }, cells.node)),
    provenance({ folder: "benchmark", ...result }), closing()];
}
