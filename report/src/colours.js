// Colours are CSS variables, so that light, dark and paper need no redrawing.
import methods from "../../python/affpcl/method_colours.json";

/** The variables of the methods' colours, which plots in Python share. */
export function colourRules() {
  const rules = (tone) => [["--alone", methods.alone[tone]], ...methods.palette.map((pair, i) => [`--method-${i + 1}`, pair[tone]])]
    .map(([name, colour]) => `${name}:${colour};`).join("");
  return `:root{${rules(0)}}@media screen and (prefers-color-scheme:dark){:root{${rules(1)}}}`;
}

/** A place in the palette for each name: that of its kind, else the first spare one; -1 for learning alone. */
export function places(list) {
  const kinds = new Map(list.map(({ name, kind }) => [name, kind]));
  const found = new Map(), taken = new Set();
  for (const [name, kind] of kinds) {
    const own = kind === "independent" ? -1 : methods.kinds[kind];
    if (own === undefined || taken.has(own)) continue;
    found.set(name, own);
    if (own >= 0) taken.add(own);
  }
  let more = 0;
  for (const name of kinds.keys()) {
    if (found.has(name)) continue;
    const place = methods.spare.find((p) => !taken.has(p)) ?? methods.spare[more++ % methods.spare.length];
    taken.add(place);
    found.set(name, place);
  }
  return new Map([...kinds.keys()].map((name) => [name, found.get(name)]));
}

/** A colour for each method: grey for learning alone. */
export function methodColours(list) {
  return new Map([...places(list)].map(([name, place]) => [name, place < 0 ? "var(--alone)" : `var(--method-${place + 1})`]));
}

export const OUTCOMES = {
  domain: ["gained", "even", "lost"],
  range: ["var(--gained)", "var(--even)", "var(--lost)"],
};

/** Below 1 blue, at 1 pale, above 1 red: for ratios, on a logarithmic scale. */
export const RATIO = { type: "diverging-log", pivot: 1, scheme: "RdBu", reverse: true };

/** Few like the ground, many unlike it; on a logarithmic scale, since counts differ by orders. */
export const counts = (most) => ({ type: "log", scheme: "Blues", domain: [1, Math.max(2, most)], reverse: matchMedia("screen and (prefers-color-scheme: dark)").matches });
