// The results whose pages are tested: made with the program, small, in a temporary folder.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readCsv } from "./headline.mjs";

export const HOSTILE = "<script>alert(1)</script>";
export const UNICODE = "Zürich 東京 🙂 \u2028 \"quoted\", 'it''s' & </script><!--";

const METHODS = `
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
`;

export function maker(affpcl, root) {
  const run = (...words) => execFileSync(affpcl, words.map(String), { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const at = (name) => join(root, name);
  const fromSpec = (name, spec, ...words) => {
    writeFileSync(at(`${name}.toml`), spec);
    run("run", at(`${name}.toml`), "--out", at(name), "--quiet", ...words);
    return at(name);
  };
  const spec = (problem, steps, methods = METHODS) =>
    `[problem]\nkind = "gaussian"\n${problem}\n[run]\nsteps = ${steps}\nreplicates = 3\nseed = 5\n${methods}`;
  return {
    run,
    figure: (name) => {
      run("reproduce", name, "--out", at(name), "--quiet", "--set", "run.replicates=3");
      return at(name);
    },
    figures: () => run("reproduce").split("\n").map((line) => line.trim().split(/\s+/)[0])
      .filter((name) => name && name !== "benchmark" && !name.startsWith("fig-real")),  // those need data
    demo: (name, ...words) => {
      run("run", "examples/demo.toml", "--out", at(name), "--quiet", ...words);
      return at(name);
    },
    oneMethod: () => fromSpec("one-method", spec("agents = 4", 20, '[[method]]\nkind = "independent"\n')),
    noAlone: () => fromSpec("no-alone", spec("agents = 4", 20, '[[method]]\nkind = "affpcl"\n[[method]]\nkind = "fedavg"\n')),
    oneAgent: () => fromSpec("one-agent", spec("agents = 1", 20)),
    oneReplicate: () => fromSpec("one-replicate", spec("agents = 5", 20), "--set", "run.replicates=1"),
    manyAgents: () => fromSpec("many-agents", spec("agents = 2000\ndelta_env = 0.3", 15)),
    diverged: () => {  // every method does: the program says so by its exit code, and writes the result
      try {
        fromSpec("diverged", spec("agents = 4", 200), "--set", "run.step_size=5");
      } catch (error) {
        if (error.status !== 1) throw error;
      }
      return at("diverged");
    },
    alarm: () => fromSpec("alarm", spec("agents = 8\ndelta_env = 0.8\ndelta_obj = 0.8", 400,
      '[[method]]\nkind = "affpcl"\nname = "no ratio"\nratio = "none"\n[[method]]\nkind = "independent"\n')),
    names: () => fromSpec("names", spec("agents = 4", 20, [HOSTILE, UNICODE].map((name) =>
      `[[method]]\nkind = "affpcl"\nname = ${JSON.stringify(name)}\n`).join("") + '[[method]]\nkind = "independent"\n') +
      `\n[sweep]\n"problem.delta_env" = [0.0, 0.4]\n`),
    empty: () => {
      const folder = fromSpec("empty", spec("agents = 4", 20));
      const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
      Object.assign(summary, { headline: "nothing was finished", settings: [] });
      summary.manifest.complete = false;
      writeFileSync(join(folder, "summary.json"), JSON.stringify(summary));
      for (const file of ["curves.csv", "agents.csv"])
        writeFileSync(join(folder, file), readFileSync(join(folder, file), "utf8").split("\n")[0] + "\n");
      return folder;
    },
    fit: (name, data, ...words) => {
      run("fit", data, "--out", at(name), "--quiet", ...words);
      return at(name);
    },
    affinity: () => {
      run("affinity", "examples/shops.csv", "--target", "sales", "--agent", "shop", "--out", at("alike"), "--quiet");
      return at("alike");
    },
    /** The centre of a fit as `inspect --csv` has it. */
    inspect: (folder) => {
      run("inspect", folder, "--csv", join(folder, "coefficients.csv"));
      return JSON.stringify(readCsv(join(folder, "coefficients.csv")).filter((row) => row.model === "centre"));
    },
    /** Many agents of a few rows each. */
    crowd: (count) => {
      const rows = Array.from({ length: 5 * count }, (_, r) => {
        const a = Math.floor(r / 5), u = Math.sin(12.9 * r), e = Math.sin(78.2 * r * r % 1000);
        return `shop ${a},${(50 + 10 * u).toFixed(2)},${(20 + (2 + Math.sin(3 * a)) * 10 * u + 5 * Math.cos(7 * a) + 8 * e).toFixed(3)}`;
      });
      writeFileSync(at(`crowd-${count}.csv`), `shop,size,sales\n${rows.join("\n")}\n`);
      run("fit", at(`crowd-${count}.csv`), "--target", "sales", "--agent", "shop", "--out", at(`crowd-${count}`), "--quiet");
      return at(`crowd-${count}`);
    },
    school: (data) => {
      if (!existsSync(data)) return null;
      run("fit", data, "--target", "y", "--out", at("school"), "--quiet");
      return at("school");
    },
    /** Two outcomes that each of five agents weighs in its own way. */
    weighed: (name, ...words) => {
      const sites = ["a", "b", "c", "d", "e"];
      const rows = sites.flatMap((site, a) => Array.from({ length: 40 }, (_, i) => {
        const u = Math.sin(7 * i + a), v = Math.cos(11 * i * (a + 1)), e = Math.sin(29 * i + 5 * a);
        return `${site},${u.toFixed(5)},${v.toFixed(5)},${(u + v + 0.2 * e).toFixed(5)},${(u - v + 0.3 * a * u - 0.2 * e).toFixed(5)}`;
      }));
      writeFileSync(at("weighed.csv"), `site,u,v,speed,comfort\n${rows.join("\n")}\n`);
      writeFileSync(at("weights.csv"), `site,speed,comfort\n${sites.map((site, a) => `${site},${a / 4},${1 - a / 4}`).join("\n")}\n`);
      run("fit", at("weighed.csv"), "--channels", "speed,comfort", "--weights", at("weights.csv"), "--out", at(name), "--quiet", ...words);
      return at(name);
    },
    /** Values of three states from a log. */
    values: () => {
      const states = ["home", "road", "shop"];
      const rows = ["r0", "r1", "r2", "r3"].flatMap((robot, a) => Array.from({ length: 120 }, (_, t) => {
        const step = (i) => states[Math.floor(1.5 * (1 + Math.sin(12.9 * i + 7 * a)))];
        return `${robot},${step(t)},${step(t + 1)},${(states.indexOf(step(t)) + 0.2 * a + 0.3 * Math.sin(29 * t)).toFixed(4)}`;
      }));
      writeFileSync(at("log.csv"), `agent,state,next_state,reward\n${rows.join("\n")}\n`);
      run("fit", at("log.csv"), "--task", "td", "--gamma", "0.7", "--out", at("values"), "--quiet");
      return at("values");
    },
    /** Agents with hostile names, a class as target. */
    namedAgents: () => {
      const agents = [HOSTILE, UNICODE.replaceAll('"', '""'), "c", "d", "e"];
      const rows = agents.flatMap((agent, a) => Array.from({ length: 30 }, (_, i) => {
        const u = Math.sin(7 * i + a), v = Math.cos(11 * i * (a + 1));
        return `"${agent}",${u.toFixed(5)},${v.toFixed(5)},${u + 0.5 * v + 0.3 * Math.sin(29 * i) + 0.4 * (a - 2) > 0 ? "yes <b>" : "no"}`;
      }));
      writeFileSync(at("named.csv"), `site,"u <i>",v,answer\n${rows.join("\n")}\n`);
      run("fit", at("named.csv"), "--agent", "site", "--target", "answer", "--out", at("named"), "--quiet");
      return at("named");
    },
  };
}
