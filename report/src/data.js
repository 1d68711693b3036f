// The data that the verb put into the page, with packed columns unpacked when they are first asked for.

/** Four base64 characters a number: the upper three bytes of a 32-bit float. */
export function unpack(text) {
  const bytes = atob(text);
  const view = new DataView(new ArrayBuffer(4));
  const out = new Float64Array(bytes.length / 3);
  for (let i = 0; i < out.length; ++i) {
    for (let b = 0; b < 3; ++b) view.setUint8(b, bytes.charCodeAt(3 * i + b));
    out[i] = view.getFloat32(0);
  }
  return out;
}

export function readData() {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const result of data.results) if (result.kind === "fit") result.fitted = result.agents.count, result.agents = fittedAgents(result.agents);
  return data;
}

const GIVEN = ["personalised", "independent", "pooled"], VERDICTS = ["gained", "even", "lost"];

/** The agents of a fit as objects: {agent, rows, given, verdict, why, score: {given, …}, gain: {mean, lo, hi}, …}. */
function fittedAgents(columns) {
  const numbers = Object.entries(columns.numbers).map(([name, packed]) => [name.split("."), unpack(packed)]);
  return columns.agent.map((agent, i) => {
    const one = { agent, place: i, rows: columns.rows[i], given: GIVEN[columns.given.charCodeAt(i) - 65], why: columns.why[i] ?? "" };
    if (columns.verdict) one.verdict = VERDICTS[columns.verdict.charCodeAt(i) - 65];
    for (const [[group, name], values] of numbers)
      if (name) (one[group] ??= {})[name] = values[i];
      else one[group] = values[i];
    if (one.weights) one.weights.pooled = Math.max(0, 1 - one.weights.personalised - one.weights.alone);
    return one;
  });
}

export function valueText(value) {
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}

/** problem.delta_env without its table: keys of a sweep are few, and these names alone tell them apart. */
export const shortKey = (key) => key.split(".").at(-1);

/** What a key means, in a few words: its description up to the first colon, semicolon, comma or bracket. */
function meaning(key, labels) {
  const words = (labels?.[key] ?? "").split(/[:;,(]/)[0].trim();
  return words.length <= 48 ? words : "";
}

/** "environment heterogeneity = objective heterogeneity (delta_env = delta_obj)", as far as the parameters are described. */
export function axisTitle(keys, labels, room = Infinity) {
  const short = keys.map(shortKey).join(" = ");
  const words = keys.map((key) => meaning(key, labels));
  if (words.some((w) => !w)) return short;
  const whole = `${[...new Set(words)].join(" = ")} (${short})`;
  return whole.length * 6.5 < room ? whole : short;
}

/** The same in full, for notes. */
export function meanings(keys, labels) {
  return keys.filter((key) => labels?.[key]).map((key) => `${shortKey(key)}: ${labels[key]}`).join(". ");
}

/** "a = b = 0.3, c = 2": keys that hold the same value together. */
export function settingTitle(setting) {
  const parts = [];
  for (const [key, value] of Object.entries(setting.at)) {
    const last = parts.at(-1);
    if (last && last.text === valueText(value)) last.keys.push(shortKey(key));
    else parts.push({ keys: [shortKey(key)], text: valueText(value) });
  }
  return parts.map(({ keys, text }) => [...keys, text].join(" = ")).join(", ");
}

/** What is swept: keys that move together are one dimension, [{name, keys, values}]. */
export function dimensions(settings) {
  if (settings.length < 2) return [];
  const byColumn = new Map();
  for (const key of Object.keys(settings[0].at)) {
    const column = JSON.stringify(settings.map((s) => s.at[key]));
    byColumn.set(column, [...(byColumn.get(column) ?? []), key]);
  }
  return [...byColumn.values()].map((keys) => ({
    keys,
    name: keys.map(shortKey).join(" = "),
    raw: keys.join(" = "),
    values: [...new Set(settings.map((s) => JSON.stringify(s.at[keys[0]])))].map((v) => JSON.parse(v)),
    of: (setting) => setting.at[keys[0]],
  })).filter((dimension) => dimension.values.length > 1);
}

/** The agents of a method at a setting: [{agent, mse_mean, …}] with the columns of agents.csv. */
export function agentsOf(setting, method) {
  const columns = Object.entries(method.columns).map(([name, packed]) => [name, unpack(packed)]);
  const rows = columns.length ? columns[0][1].length : 0;
  return Array.from({ length: rows }, (_, i) => {
    const row = { agent: setting.shown ? setting.shown[i] : i };
    for (const [name, values] of columns) row[name] = values[i];
    return row;
  });
}

/** [{method, agent, step, mean, lo, hi}] of all methods at a setting. */
export function curvesOf(result, setting) {
  const points = [];
  for (const method of setting.methods)
    for (const curve of method.curves) {
      const [mean, lo, hi] = [curve.mean, curve.lo, curve.hi].map(unpack);
      result.steps[curve.steps].forEach((step, i) =>
        points.push({ method: method.name, agent: curve.agent, step, mean: mean[i], lo: lo[i], hi: hi[i] }));
    }
  return points;
}

/** Below 1 with its whole interval: gained; above: lost. */
export function outcome(row) {
  if (row.vs_hi < 1) return "gained";
  return row.vs_lo > 1 ? "lost" : "even";
}
