// Colours are CSS variables, so that light, dark and paper need no redrawing.

const PALETTE = 8;

/** A colour for each method: grey for learning alone, the others in order. */
export function methodColours(methods) {
  const colours = new Map();
  let next = 0;
  for (const { name, kind } of methods)
    if (!colours.has(name)) colours.set(name, kind === "independent" ? "var(--alone)" : `var(--method-${(next++ % PALETTE) + 1})`);
  return colours;
}

export const OUTCOMES = {
  domain: ["gained", "even", "lost"],
  range: ["var(--gained)", "var(--even)", "var(--lost)"],
};

/** Below 1 blue, at 1 pale, above 1 red: for ratios, on a logarithmic scale. */
export const RATIO = { type: "diverging-log", pivot: 1, scheme: "RdBu", reverse: true };
