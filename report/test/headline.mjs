// The numbers of a headline once more, from the CSV files alone.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** RFC 4180. */
export function readCsv(path) {
  const text = readFileSync(path, "utf8");
  const rows = [[]];
  let field = "", quoted = false;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "," || c === "\n") {
      rows.at(-1).push(field);
      field = "";
      if (c === "\n") rows.push([]);
    } else field += c;
  }
  rows.pop();
  const [names, ...records] = rows;
  return records.map((record) => Object.fromEntries(names.map((name, i) => [name, record[i]])));
}

const number = (text) => (text === "" ? NaN : Number(text));

/** What the headline of each setting should say, in the order of the files. */
export function recompute(folder) {
  const { manifest, settings } = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
  const curves = readCsv(join(folder, "curves.csv")), agents = readCsv(join(folder, "agents.csv"));
  const methods = manifest.spec.method.map((m) => ({ name: m.name ?? m.kind, kind: m.kind, batch: m.batch ?? 1 }));
  const keys = Object.keys(settings[0]?.at ?? {});
  const place = (row) => keys.map((key) => row[key]).join("\u0000");
  const subject = methods.find((m) => m.kind === "affpcl") ?? methods.find((m) => m.kind !== "independent");
  const alone = methods.find((m) => m.kind === "independent");
  if (!subject || !alone) return [];
  return [...new Set(agents.map(place))].map((at, index) => {
    const mine = agents.filter((row) => place(row) === at);
    const of = (m) => mine.filter((row) => row.method === m.name);
    const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
    const errorOf = (m) => mean(of(m).map((row) => number(row.mse_mean)));
    const target = errorOf(alone);
    const until = (m) => {
      const hit = curves.find((row) => place(row) === at && row.method === m.name && row.agent === "all" && number(row.mse_mean) <= target * (1 + 1e-12));
      if (hit) return number(hit.step) * m.batch;
      return errorOf(m) <= target ? settings[index].steps * m.batch : 0;
    };
    const rows = of(subject).map((row) => ({ agent: number(row.agent), ratio: number(row.vs_independent), lo: number(row.vs_lo), hi: number(row.vs_hi) }));
    return {
      method: subject.name,
      ratio: errorOf(subject) / target,
      samples: until(subject),
      samples_alone: until(alone),
      gained: rows.filter((r) => r.hi < 1).length,
      lost: rows.filter((r) => r.lo > 1).length,
      agents: rows.length,
      worst: rows.reduce((a, b) => (b.ratio > a.ratio ? b : a)),
    };
  });
}

/** The numbers that a sentence holds, in order. */
export function numbersIn(text) {
  return (text.match(/-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/g) ?? []).map(Number);
}
