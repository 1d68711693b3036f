// What a study was expected to show: the expected range as a bar, the measured value as a dot.
import { h, number } from "./dom.js";

const WIDTH = 220, HEIGHT = 22, ROOM = 8;
const SPACE = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Every claim has a scale of its own, logarithmic where its values are far apart. */
function track({ lo, hi, measured, holds }) {
  const all = [lo, hi, measured].filter((v) => Number.isFinite(v) && v !== null);
  const log = Math.min(...all) > 0 && Math.max(...all) / Math.min(...all) > 30;
  const to = (v) => (log ? Math.log(v) : v);
  const [a, b] = [to(Math.min(...all)), to(Math.max(...all))];
  const pad = 0.15 * (b - a || Math.abs(a) || 1);
  const at = (v) => ROOM + ((to(v) - a + pad) / (b - a + 2 * pad)) * (WIDTH - 2 * ROOM);
  const svg = shape("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true", class: "track-of-claim" });
  svg.append(shape("line", { x1: ROOM, x2: WIDTH - ROOM, y1: HEIGHT / 2, y2: HEIGHT / 2, stroke: "var(--line)" }));
  const width = Math.max(4, at(hi) - at(lo));
  svg.append(shape("rect", { x: (at(lo) + at(hi) - width) / 2, width, y: HEIGHT / 2 - 5, height: 10, rx: 3, fill: "var(--expected)" }));
  if (Number.isFinite(measured) && measured !== null)
    svg.append(shape("circle", { cx: at(measured), cy: HEIGHT / 2, r: 5, fill: holds ? "var(--holds)" : "var(--lost)", stroke: "var(--card)", "stroke-width": 1.5 }));
  return svg;
}

export function claimWords(claims) {
  const held = claims.filter((c) => c.holds).length;
  if (claims.length === 1) return held ? "The expected result holds" : "The expected result does not hold";
  return held === claims.length ? `All ${held} expected results hold` : `${held} of ${claims.length} expected results hold`;
}

export function claimsSection(claims) {
  if (!claims?.length) return null;
  const row = (c) => h("tr", { class: c.holds ? null : "differs" },
    h("td", { class: c.holds ? "holds" : "lost" }, c.holds ? "holds" : "differs"),
    h("td", {}, c.says), h("td", { class: "drawn" }, track(c)),
    h("td", { class: "number", "data-name": "found" }, number(c.measured, 3)), h("td", { class: "number", "data-name": "expected" }, c.lo === c.hi ? number(c.lo) : `${number(c.lo)} to ${number(c.hi)}`));
  return h("section", { id: "claims" }, h("h2", {}, "What was expected, and what was found"),
    h("div", { class: "card" },
      h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Claims" }, h("table", {},
        h("caption", { class: "hidden" }, "Claims of the paper with expected ranges and measured values"),
        h("thead", {}, h("tr", {}, ["", "claim", "", "found", "expected"].map((name, c) => (name ? h("th", { scope: "col", class: c > 2 ? "number" : null }, name) : h("td", {}))))),
        h("tbody", {}, [...claims].sort((a, b) => a.holds - b.holds).map(row)))),
      h("p", { class: "note" }, `${claimWords(claims)}. Bar: the expected range; dot: the value that was found. Each row has a scale of its own.`)));
}
