// One agent: what it gained and why, its scores, its model beside the centre, and the agents most like it.
import { distance } from "./coefficients.js";
import { count, h, interval, number } from "./dom.js";

const NORMAL_90 = 1.6449;
const COEFFICIENTS = 20, NEAREST = 3;

/** The gain as a percentage of the independent model's expected error, which is the chosen one's and the gain; NaN without one. */
export const gainShare = (a) => {
  const independent = a.score.given + a.gain.mean;
  return independent > 0 ? (100 * a.gain.mean) / independent : NaN;
};

const percent = (to, from) => (from > 0 ? `${to <= from ? "−" : "+"}${number(100 * Math.abs(1 - to / from), 3)} %` : "");

function table(label, columns, rows) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", {}, h("caption", { class: "hidden" }, label),
      h("thead", {}, h("tr", {}, columns.map((name, c) => h("th", { scope: "col", class: c ? "number" : null }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, c) => h(c ? "td" : "th", { scope: c ? null : "row", class: c ? "number" : null }, cell)))))));
}

function scores(result, a) {
  const { measure } = result.score;
  const kinds = [["chosen", "given"], ["personalised", "personalised"], ["independent", "alone"], ["pooled", "pooled"]];
  const words = { mse: "mean squared error", log_loss: "log loss", td_error: "squared TD error", deviance: "deviance" }[measure];
  const columns = ["model", words, "beside independent", ...(measure === "mse" ? ["RMSE"] : []), ...(a.accuracy ? ["accuracy"] : [])];
  return table(`Scores of ${a.agent}`, columns, kinds.map(([name, key]) => [name, number(a.score[key]), key === "alone" ? "" : percent(a.score[key], a.score.alone),
    ...(measure === "mse" ? [number(Math.sqrt(a.score[key]))] : []), ...(a.accuracy ? [number(a.accuracy[key], 3)] : [])]));
}

function model(result, known, a) {
  const several = known.channels.length > 1;
  const all = known.channels.flatMap((c) => known.names.map((name, k) => ({
    name: several ? `${name} (${c.name})` : name, own: c.x[a.place][k], error: NORMAL_90 * c.se[a.place][k], centre: c.centre[k], off: c.off(a.place, k),
  })));
  const shown = [...all].sort((p, q) => Math.abs(q.off) - Math.abs(p.off)).slice(0, COEFFICIENTS);
  return [
    table(`Model of ${a.agent}`, ["coefficient, per unit", a.agent, "centre", "difference in spreads"], shown.map((r) => [
      r.name, `${number(r.own)}${Number.isFinite(r.error) ? ` ± ${number(r.error, 2)}` : ""}`, number(r.centre), r.off ? `${r.off > 0 ? "+" : "−"}${number(Math.abs(r.off), 2)}` : "0"])),
    h("p", { class: "note" }, `${shown.length < all.length ? `The ${shown.length} of ${all.length} coefficients that differ most. ` : ""}` +
      `${known.errors ? "±: half of a 90 % interval. " : ""}A spread is the standard deviation between agents.`)];
}

/** A card that shows one agent at a time: {node, show(place)}. */
export function agentCard(result, known) {
  const { agents, score } = result;
  const body = h("div", {}, h("p", { class: "note" }, "Choose an agent in the table, or click it in a chart."));
  const node = h("div", { class: "card", id: "agent", tabindex: -1, "aria-live": "polite" }, body);

  function nearest(a) {
    const rows = known.deviations;
    if (!rows[0]?.length || agents.length < 3) return null;
    const list = agents.filter((b) => b !== a).map((b) => [distance(rows[a.place], rows[b.place]), b]).sort((p, q) => p[0] - q[0]).slice(0, NEAREST);
    return h("p", {}, "Most like it: ", list.map(([d, b], i) => [i ? ", " : "", h("button", { type: "button", class: "link", onclick: () => show(b.place) }, b.agent), ` (${number(d, 2)})`]),
      `; its distance to the centre is ${number(distance(rows[a.place]), 3)} spreads.`);
  }

  function show(place) {
    const a = agents[place];
    const weights = a.weights && a.weights.personalised < 0.995
      ? ` (${[["personalised", "personalised"], ["alone", "independent"], ["pooled", "pooled"]].filter(([k]) => a.weights[k] > 0.005).map(([k, name]) => `${number(100 * a.weights[k], 2)} % ${name}`).join(", ")})` : "";
    body.replaceChildren(...[
      h("h3", {}, a.agent),
      h("p", {}, `${count(a.rows, "row")}. Chosen model: ${a.given}${weights}.`, a.why ? ` ${a.why}.` : ""),
      score && a.gain ? h("p", {}, h("span", { class: a.verdict }, a.verdict), `: the gain is ${number(a.gain.mean)} ${interval(a.gain.lo, a.gain.hi)}` +
        `${Number.isFinite(gainShare(a)) ? `, ${number(gainShare(a), 3)} % of its independent model's expected error` : ""}; it is above 0 with probability ${number(a.probability, 3)}.`) : null,
      score ? scores(result, a) : null,
      known ? model(result, known, a) : null, known ? nearest(a) : null].flat().filter(Boolean));
  }
  const pick = (at) => {
    show(at);
    node.scrollIntoView({ block: "nearest" });
    node.focus({ preventScroll: true });
  };
  return { node, show, pick };
}
