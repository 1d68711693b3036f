// The page of a run or a reproduced figure: the sweep, then one setting after another.
import { agentFigures } from "./agents.js";
import { claimsSection, claimWords } from "./claims.js";
import { methodColours } from "./colours.js";
import { curvesFigure } from "./curves.js";
import { choice, count, h, interval, number, withInterval } from "./dom.js";
import { settingTitle } from "./data.js";
import { updateFigures } from "./figure.js";
import { closing, opening, provenance, tiles, warning } from "./frame.js";
import { sweepFigure } from "./sweep.js";
import { alarmWords, weightFigure } from "./weights.js";

function settingTiles(setting) {
  const { headline } = setting;
  const method = setting.methods.find((m) => m.name === headline?.method);
  if (!method) return null;
  const vs = method.vs_independent;
  const list = vs
    ? [[`Error of ${method.name} vs independent learning`, number(vs.mean, 3), `${interval(vs.lo, vs.hi)} 90 % interval`]]
    : [[`Error of ${method.name}`, number(method.mse.mean, 3), `${interval(method.mse.lo, method.mse.hi)} 90 % interval`]];
  if (headline.samples > 0) {
    const fewer = headline.samples_alone / headline.samples;
    const times = fewer >= 1.05 ? `${number(fewer, 2)}× fewer` : fewer <= 1 / 1.05 ? `${number(1 / fewer, 2)}× as many` : "as many";
    list.push(["Samples until alone's error", times,
      `${headline.samples} for ${headline.samples_alone} per agent`]);
  }
  if (headline.worst) {
    const { worst } = headline;
    const n = headline.gained + headline.even + headline.lost;
    list.push(["Agents that gained", `${headline.gained} of ${n}`, `${headline.even} even, ${headline.lost} lost`]);
    list.push(["Worst agent vs independent", number(worst.mean, 3), `${interval(worst.lo, worst.hi)} agent ${worst.agent}`]);
  }
  return tiles(list);
}

function ratioBar(vs, colour) {
  if (!vs) return "";
  const share = Math.min(1, vs.mean);
  return h("span", { class: "beside", "aria-hidden": "true" },
    h("span", { class: "track" }, h("span", { class: "ratio", style: `width:${(100 * share).toFixed(1)}%;background:${colour}` })),
    vs.mean > 1 ? " ▸" : "");
}

function methodTable(setting, colours) {
  const smallest = Math.min(...setting.methods.map((m) => m.mse.mean ?? Infinity));
  const cell = (text) => h("td", { class: "number" }, text);
  const row = (m) => h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "swatch", style: `background:${colours.get(m.name)}` }), ` ${m.name}`,
      m.mse.mean === smallest ? h("span", { class: "tag" }, "smallest") : null),
    cell(withInterval(m.mse)), cell(number(m.mse.median, 3)),
    cell(m.vs_independent ? withInterval(m.vs_independent) : "–"), h("td", {}, ratioBar(m.vs_independent, colours.get(m.name))),
    cell(number(m.comm.up, 3)), cell(`${setting.diverged[m.name] ?? 0} of ${setting.replicates}`));
  const head = ["method", "error [90 % interval]", "median", "vs independent", "", "numbers sent a round", "diverged"];
  return h("div", { class: "card" },
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Methods at this setting" },
      h("table", {}, h("caption", { class: "hidden" }, "Methods at this setting"),
        h("thead", {}, h("tr", {}, head.map((name, c) => (name ? h("th", { scope: "col", class: c ? "number" : null }, name) : h("td", {}))))),
        h("tbody", {}, setting.methods.map(row)))));
}

function otherErrors(setting) {
  const rows = setting.methods.flatMap((m) => Object.entries(m.errors ?? {}).map(([name, e]) => [m.name, name, e]));
  if (!rows.length) return null;
  return h("div", { class: "card" }, h("h3", {}, "Other measures of error"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Other measures of error" },
      h("table", {}, h("thead", {}, h("tr", {}, ["method", "measure", "error", "vs independent"].map((t) => h("th", { scope: "col" }, t)))),
        h("tbody", {}, rows.map(([method, name, e]) => h("tr", {}, [method, name, withInterval(e.mse),
          e.vs_independent ? withInterval(e.vs_independent) : "–"].map((t) => h("td", {}, t))))))));
}

function divergedWords(setting) {
  const lost = Object.entries(setting.diverged).filter(([, n]) => n > 0);
  if (!lost.length) return null;
  return warning(`Diverged: ${lost.map(([name, n]) => `${name} in ${n} of ${setting.replicates}`).join(", ")} replicates. ` +
    `A replicate in which any method diverged is left out of every mean; ${setting.used} are used.`);
}

function settingBar(settings, state, show) {
  if (settings.length < 2) return null;
  const picker = choice("Setting", settings.map((s, i) => [i, settingTitle(s)]), state.setting, (value) => show(Number(value)));
  const step = (by, text, label) => h("button", { type: "button", "aria-label": label,
    onclick: () => show((state.setting + by + settings.length) % settings.length) }, text);
  return { node: h("div", { class: "bar" }, picker, step(-1, "‹", "Previous setting"), step(1, "›", "Next setting")),
    sync: () => { picker.querySelector("select").value = state.setting; } };
}

const percent = (ratio) => `${number(100 * ratio, 2)}\u00a0%`;

/** The result in one sentence without brackets; null where learning alone is not there to compare with. */
export function plainWords(settings) {
  const found = settings.map((s) => s.methods.find((m) => m.name === s.headline?.method))
    .filter((m) => m && m.kind !== "independent" && Number.isFinite(m.vs_independent?.mean ?? NaN));
  if (!found.length) return null;
  const { name } = found[0];
  const ratios = found.map((m) => m.vs_independent.mean);
  if (ratios.length === 1) return `${name} has ${percent(ratios[0])} of the error of independent learning.`;
  const below = ratios.filter((r) => r < 1).length;
  return `${name} has a smaller error than independent learning in ${below === ratios.length ? `all ${below}` : `${below} of ${ratios.length}`} settings: ` +
    `between ${percent(Math.min(...ratios))} and ${percent(Math.max(...ratios))} of it.`;
}

export function studyPage(result) {
  const { manifest, settings } = result;
  const title = manifest.spec.title ?? manifest.study ?? "A run";
  const eyebrow = ["affpcl", manifest.study, settings.length > 1 ? count(settings.length, "setting") : null].filter(Boolean).join(" · ");
  const plain = [plainWords(settings), result.claims?.length ? `${claimWords(result.claims)}.` : null].filter(Boolean).join(" ");
  const head = [opening({ eyebrow, title, headline: plain || `${result.headline}.`, detail: plain ? `${result.headline}.` : null })];
  if (manifest.complete === false) head.push(warning("This run was interrupted: the page shows what was finished."));
  if (!settings.length) return [...head, provenance(result), closing()];

  const colours = methodColours(settings.flatMap((s) => s.methods));
  const state = { setting: Math.floor(settings.length / 2), hidden: new Set(), colours, show };
  const here = () => settings[state.setting];
  const summary = h("div");
  const alarm = h("div");
  const bar = settingBar(settings, state, show);

  function fill() {
    const setting = here();
    summary.replaceChildren(...[
      settings.length > 1 && setting.headline ? h("p", { class: "note", "aria-live": "polite" }, `${setting.headline.text}.`) : null,
      settingTiles(setting), divergedWords(setting), methodTable(setting, colours), otherErrors(setting)].filter(Boolean));
    alarm.replaceChildren(...alarmWords(setting).map(warning));
    bar?.sync();
  }
  function show(index) {
    state.setting = index;
    fill();
    updateFigures();
  }

  const sweep = sweepFigure(result, state);
  const agents = agentFigures(result, state, here);
  fill();
  return [...head, claimsSection(result.claims),
    sweep ? h("section", {}, h("h2", {}, "The sweep"), sweep.node) : null,
    h("section", {},
      h("h2", {}, settings.length > 1 ? "One setting" : "Methods"),
      bar?.node, summary,
      curvesFigure(result, state, here).node,
      ...agents.map((one) => one.node)),
    h("section", {}, h("h2", {}, "Weights and corrections"), alarm, weightFigure(state, here).node),
    provenance(result), closing()].filter(Boolean);
}
