// Many agents: how many lie where, instead of a mark for each.
import * as Plot from "@observablehq/plot";
import { counts as shades, OUTCOMES } from "./colours.js";
import { count, number } from "./dom.js";
import { plot, withKey } from "./figure.js";

export const MANY = 200;   // agents: more are counted in bins
const CROWD = 1000;        // dots: more are counted in cells

/** A step of 1, 2 or 5 times a power of ten. */
function niceStep(width) {
  const power = 10 ** Math.floor(Math.log10(width));
  return power * [1, 2, 5, 10].find((m) => m * power >= width);
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

/** How many agents have which value, by outcome; `base` is an edge of a bin. Rows are {value, outcome}. */
export function histogram(width, label, rows, { base, axis }) {
  const finite = rows.filter((r) => Number.isFinite(r.value));
  if (!finite.length) return null;
  const sorted = finite.map((r) => r.value).sort((a, b) => a - b);
  const [lo, hi] = [Math.min(base, quantile(sorted, 0.01)), Math.max(base, quantile(sorted, 0.99))];
  const step = niceStep((hi - lo || Math.abs(base) || 1) / 60);
  const [first, last] = [Math.floor((lo - base) / step), Math.ceil((hi - base) / step)];
  const bins = Array.from({ length: Math.max(1, last - first) }, (_, k) => ({ from: base + (first + k) * step, counts: new Map() }));
  for (const r of finite) {
    const bin = bins[Math.min(bins.length - 1, Math.max(0, Math.floor((r.value - base) / step) - first))];
    bin.counts.set(r.outcome, (bin.counts.get(r.outcome) ?? 0) + 1);
  }
  const parts = bins.flatMap((bin) => {
    let below = 0;
    return OUTCOMES.domain.filter((o) => bin.counts.get(o)).map((outcome) => {
      const part = { x1: bin.from, x2: bin.from + step, y1: below, y2: below + bin.counts.get(outcome), outcome };
      below = part.y2;
      return part;
    });
  });
  const whole = bins.map((bin, k) => ({ at: bin.from + step / 2, y: [...bin.counts.values()].reduce((a, b) => a + b, 0), ends: k === 0 ? "less than " : k === bins.length - 1 ? "more than " : "", ...bin }));
  const title = (bin) => [
    bin.ends === "less than " ? `below ${number(bin.from + step)}` : bin.ends ? `above ${number(bin.from)}` : `${number(bin.from)} to ${number(bin.from + step)}`,
    count(bin.y, "agent"), ...[...bin.counts].map(([o, n]) => `${n} ${o}`)].join("\n");
  return plot(width, label, {
    height: 300,
    x: { label: axis, domain: [base + first * step, base + last * step] },
    y: { label: "agents", grid: true },
    color: OUTCOMES,
    marks: [
      Plot.rect(parts, { x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: "outcome", inset: 0.3 }),
      Plot.ruleY([0], { stroke: "currentColor" }),
      Plot.ruleX([base], { stroke: "currentColor", strokeDasharray: "4 3" }),
      Plot.tip(whole.filter((bin) => bin.y), Plot.pointerX({ x: "at", y: "y", title })),
    ],
  });
}

/**
 * Points, or cells with their number where there are too many; logarithmic axes where all values are positive and far apart.
 * options are those of the plot; marks(data) gives the marks of few points, under(ends) what lies behind.
 */
export function cloud(width, label, rows, { x, y, words = "agents", marks, under = () => [], options }) {
  const data = rows.filter((r) => Number.isFinite(r[x]) && Number.isFinite(r[y]));
  if (!data.length) return null;
  if (data.length <= CROWD) return plot(width, label, { ...options, marks: [...under(), ...marks(data)] });
  const cells = (name, scale) => {
    const sorted = data.map((r) => r[name]).sort((a, b) => a - b);
    const log = scale?.type === "log";
    const [lo, hi] = scale?.domain ?? [quantile(sorted, 0.002), quantile(sorted, 0.998)];
    const [a, b] = log ? [Math.log(lo), Math.log(hi)] : [lo, hi];
    const edge = (k) => { const v = a + (k * (b - a)) / 40; return log ? Math.exp(v) : v; };
    return { edge, at: (v) => Math.min(39, Math.max(0, Math.floor((40 * ((log ? Math.log(v) : v) - a)) / (b - a || 1)))), domain: [lo, hi] };
  };
  const [across, up] = [cells(x, options.x), cells(y, options.y)];
  const counts = new Map();
  for (const r of data) {
    const at = 40 * across.at(r[x]) + up.at(r[y]);
    counts.set(at, (counts.get(at) ?? 0) + 1);
  }
  const found = [...counts].map(([at, n]) => {
    const [i, j] = [Math.floor(at / 40), at % 40];
    return { x1: across.edge(i), x2: across.edge(i + 1), y1: up.edge(j), y2: up.edge(j + 1), n };
  });
  return withKey(plot(width, label, {
    ...options,
    x: { ...options.x, domain: across.domain }, y: { ...options.y, domain: up.domain },
    color: shades(Math.max(...found.map((c) => c.n))),
    r: undefined,
    marks: [
      Plot.rect(found, { x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: "n" }),
      ...under(),
      Plot.tip(found, Plot.pointer({ x: (c) => (c.x1 + c.x2) / 2, y: (c) => (c.y1 + c.y2) / 2, title: (c) => `${number(c.x1, 3)} to ${number(c.x2, 3)}\n${number(c.y1, 3)} to ${number(c.y2, 3)}\n${count(c.n, words.replace(/s$/, ""))}` })),
    ],
  }), words);
}

/** A domain for positive values far apart: from and to, with room. */
export function logDomain(values) {
  const sorted = values.filter((v) => v > 0).sort((a, b) => a - b);
  if (!sorted.length) return [0.1, 1];
  return [sorted[0] / 1.2, sorted[sorted.length - 1] * 1.2];
}
