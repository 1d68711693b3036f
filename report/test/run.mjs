// Opens pages of many results in a real browser: node run.mjs PATH_TO_AFFPCL [only cases whose name holds this]
// Standard output: one line per check. Exit 77: skipped, and why.
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { browserPath, launch } from "../browser.mjs";
import { HOSTILE, maker } from "./cases.mjs";
import { numbersIn, recompute } from "./headline.mjs";

const affpcl = resolve(process.argv[2]);
const only = process.argv[3] ?? "";
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
process.chdir(root);
if (!browserPath()) {
  console.log("skipped: no chromium; tools/setup test installs one");
  process.exit(77);
}
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const tmp = mkdtempSync(join(tmpdir(), "affpcl-page-"));
const make = maker(affpcl, tmp);
const browser = await launch();
let passed = 0, failed = 0;

function check(name, good, why = "") {
  good ? ++passed : ++failed;
  if (!good) console.log(`FAILED ${name}: ${typeof why === "string" ? why : JSON.stringify(why)}`);
}
function near(name, a, b, tolerance) {
  check(name, Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b), 1e-12), `${a} and ${b}`);
}

/** A page that has been opened, with everything it said and asked for. */
async function open(path, { width = 1120, dark = false, phone = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light", isMobile: phone });
  const page = await context.newPage();
  const said = [], asked = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("dialog", (dialog) => { said.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => asked.push(request.url()));
  const url = pathToFileURL(path).href;
  await page.goto(url);
  await page.waitForSelector("html[data-drawn]", { timeout: 20000 }).catch(() => said.push("it was never drawn"));
  return { page, said, outside: () => asked.filter((a) => a !== url && !a.startsWith("data:") && !a.startsWith("blob:")), close: () => context.close() };
}

async function accessible(name, page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 120)}`));
  check(`${name}: axe finds nothing serious`, found.length === 0, found);
}

/** Everything on a page can be reached with the Tab key, in its order. */
async function keyboard(name, page) {
  const all = await page.evaluate(() => {
    const list = [...document.querySelectorAll("select, button, input, summary, .scroll")].filter((e) => e.checkVisibility() && !e.disabled);
    list.forEach((e, i) => { e.dataset.tab = i; });
    document.activeElement.blur();
    return list.length;
  });
  const reached = new Set();
  for (let i = 0; i < all + 5; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.dataset.tab));
  }
  const missing = Array.from({ length: all }, (_, i) => String(i)).filter((i) => !reached.has(i));
  check(`${name}: the keyboard reaches all ${all} controls`, missing.length === 0, missing);
}

/** Every table opens and has rows; every chart's CSV is what its table shows. */
async function tables(name, page) {
  for (const id of await page.$$eval("figure:not([hidden])", (list) => list.map((f) => f.id))) {
    await page.click(`#${id} summary`);
    await page.waitForSelector(`#${id} tbody`, { timeout: 5000, state: "attached" }).catch(() => {});
    const rows = await page.$$eval(`#${id} tbody tr`, (list) => list.length);
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`#${id} .foot button`).first().click()]);
    const lines = readFileSync(await file.path(), "utf8").trimEnd().split("\n").length;
    check(`${name}: ${id} has a table`, rows > 0 || id === "weights");
    check(`${name}: the table of ${id} is not endless`, rows <= 200, rows);
    check(`${name}: ${id} downloads as ${id}.csv`, file.suggestedFilename() === `${id}.csv` && lines >= rows, `${lines} lines, ${rows} rows`);
    await page.click(`#${id} summary`);
  }
}

/** A figure as files: an SVG that stands alone, and a PNG of twice its size. */
async function pictures(name, page, id) {
  const saved = async (kind) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`#${id} .foot button`, { hasText: kind }).click()]);
    check(`${name}: ${id} downloads as ${kind}`, file.suggestedFilename() === `${id}.${kind.toLowerCase()}`, file.suggestedFilename());
    return readFileSync(await file.path());
  };
  const svg = (await saved("SVG")).toString();
  check(`${name}: the SVG of ${id} has no variables`, !svg.includes("var(--"), svg.match(/.{20}var\(--.{20}/)?.[0]);
  const [width, height] = ["width", "height"].map((side) => Number(svg.match(new RegExp(`^<svg[^>]* ${side}="(\\d+)"`))?.[1]));
  const marks = await page.evaluate((text) => {
    const read = new DOMParser().parseFromString(text, "image/svg+xml");
    return read.querySelector("parsererror") ? -1 : read.querySelectorAll("path, rect, circle, line, image").length;
  }, svg);
  check(`${name}: the SVG of ${id} is drawn`, width > 200 && height > 100 && marks > 5, [width, height, marks]);
  const png = await saved("PNG");
  check(`${name}: the PNG of ${id} is sharp`, png.subarray(1, 4).toString() === "PNG" && png.readUInt32BE(16) === 2 * width && png.readUInt32BE(20) === 2 * height,
    [png.readUInt32BE(16), png.readUInt32BE(20), width, height]);
  check(`${name}: the PNG of ${id} is not blank`, png.length > 4000, png.length);
}

async function toggles(name, page) {
  const boxes = page.locator("#curves .controls .controls input");
  const lines = () => page.$$eval('#curves [data-mark="line"] path', (list) => list.length);
  const before = await lines();
  await boxes.first().uncheck();
  const fewer = await lines();
  await boxes.first().check();
  check(`${name}: a toggle takes its line away and back`, fewer === before - 1 && (await lines()) === before, [before, fewer]);
}

async function charts(page) {
  return page.$$eval("figure:not([hidden])", (list) => Object.fromEntries(list.map((f) => [f.id,
    { drawn: f.querySelectorAll(".chart svg").length, marks: f.querySelectorAll(".chart svg path, .chart svg rect, .chart svg circle, .chart svg line, .chart svg image").length }])));
}

/** What must hold of every page. */
async function common(name, folder, options = {}) {
  const path = join(folder, "report.html");
  const began = performance.now();
  make.run("report", folder, "--force");
  const wrote = performance.now() - began;
  const { size } = statSync(path);
  const opened = await open(path, options);
  const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
  const { page } = opened;
  check(`${name}: below 1.5 MB`, size < 1.5e6, size);
  const said = await page.textContent((await page.$(".detail")) ? ".detail" : ".lead");
  check(`${name}: the headline is the result's`, said.toLowerCase() === `${summary.headline}.`.toLowerCase(), said);
  check(`${name}: the command is there`, (await page.textContent("pre")) === summary.manifest.command);
  const time = await page.evaluate(() => Math.round(performance.now()));
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  console.log(`${name}: ${(size / 1e3).toFixed(0)} kB, written in ${wrote.toFixed(0)} ms, drawn after ${time} ms, ${elements} elements`);
  return { ...opened, summary, elements };
}

/** The plain sentence on top: its percentages, from the files. */
async function plainHeadline(name, folder, { page }) {
  const ratios = recompute(folder).map((one) => one.ratio);
  if (!ratios.length) return;
  const lead = await page.textContent(".lead");
  const percents = [...lead.matchAll(/([\d.e+-]+)\s%/g)].map((m) => Number(m[1]));
  const want = ratios.length > 1 ? [Math.min(...ratios), Math.max(...ratios)] : ratios;
  check(`${name}: the plain headline has ${want.length} numbers`, percents.length === want.length, lead);
  want.forEach((ratio, i) => near(`${name}: the plain headline`, percents[i], 100 * ratio, 0.06));
}

/** The claims of a reproduced study, as claims.json has them. */
async function claimed(name, folder, { page }) {
  const path = join(folder, "claims.json");
  const claims = JSON.parse(readFileSync(path, "utf8"));
  if (!claims.length) return check(`${name}: no claims, no section`, !(await page.$("#claims")));
  const rows = await page.$$eval("#claims tbody tr", (list) => list.map((tr) => ({
    word: tr.children[0].textContent, says: tr.children[1].textContent, drawn: tr.querySelectorAll("svg rect").length, dots: tr.querySelectorAll("svg circle").length, found: tr.children[3].textContent,
    // The dot lies on the bar where the claim holds, and only there.
    on: [tr.querySelector("svg circle"), tr.querySelector("svg rect")].map((e) => e?.getBoundingClientRect()).map((b) => b && [b.left, b.right]) })));
  check(`${name}: all claims are there`, rows.length === claims.length && claims.every((c) => rows.some((r) => r.says === c.says)), rows.map((r) => r.says));
  for (const claim of claims) {
    const row = rows.find((r) => r.says === claim.says && (Number(r.found) === 0 || Math.abs(Number(r.found) / claim.measured - 1) < 0.01));
    check(`${name}: ${claim.says}: its value`, row !== undefined, rows.filter((r) => r.says === claim.says));
    if (!row) continue;
    check(`${name}: ${claim.says}: its word`, row.word === (claim.holds ? "holds" : "differs"));
    check(`${name}: ${claim.says}: a bar and a dot`, row.drawn === 1 && row.dots === 1);
    const [dot, bar] = row.on, middle = (dot[0] + dot[1]) / 2;
    const edge = claim.holds ? 1 : -1;  // a pixel, in favour of what the word says
    check(`${name}: ${claim.says}: the dot's place`, (middle >= bar[0] - edge && middle <= bar[1] + edge) === claim.holds, row.on);
  }
  const top = await page.evaluate(() => document.querySelector("#claims").getBoundingClientRect().top < (document.querySelector("figure")?.getBoundingClientRect().top ?? Infinity));
  check(`${name}: claims come before charts`, top);
}

function quiet(name, opened) {
  check(`${name}: no word on the console`, opened.said.length === 0, opened.said);
  check(`${name}: no request leaves it`, opened.outside().length === 0, opened.outside());
}

/** The headline's numbers against those computed from the CSV files. */
function headlines(name, folder, summary) {
  recompute(folder).forEach((want, i) => {
    const setting = summary.settings[i], have = setting.headline, where = `${name}, setting ${i}`;
    const vs = setting.methods.find((m) => m.name === want.method).vs_independent;
    check(`${where}: method`, have.method === want.method);
    near(`${where}: error against alone`, vs.mean, want.ratio, 1e-9);
    for (const key of ["samples", "samples_alone", "gained", "lost"]) check(`${where}: ${key}`, have[key] === want[key], [have[key], want[key]]);
    check(`${where}: worst agent`, have.worst.agent === want.worst.agent, [have.worst, want.worst]);
    // The sentence itself, number by number. Names of methods may hold numbers.
    const said = numbersIn(have.text.replace(want.method, ""));
    if (have.text.includes("to the bit")) check(`${where}: no error, for none differs`, want.ratio === 1, want.ratio);
    else near(`${where}: says the error`, said[0], want.ratio, 6e-3);
    const words = have.text.match(/with ([\d.]+)x (fewer|as many)/);
    if (words) near(`${where}: says the samples`, Number(words[1]), words[2] === "fewer" ? want.samples_alone / want.samples : want.samples / want.samples_alone, 0.05);
    const gained = have.text.match(/(\d+) of (\d+) agents gained/);
    if (gained) check(`${where}: says who gained`, Number(gained[1]) === want.gained && Number(gained[2]) === want.agents, have.text);
    const worst = numbersIn(have.text.split("worst agent")[1] ?? "");
    if (worst.length) near(`${where}: says the worst`, worst[0], want.worst.ratio, 6e-3);
  });
  const all = recompute(folder);
  if (all.length > 1) {
    const gained = all.reduce((sum, one) => sum + one.gained, 0), agents = all.reduce((sum, one) => sum + one.agents, 0);
    check(`${name}: the headline of all counts the agents`, summary.headline.includes(`${gained} of ${agents} agents gained`), summary.headline);
    check(`${name}: the headline of all counts the settings`,
      summary.headline.includes(`in ${all.filter((one) => one.ratio < 1).length} of ${all.length} settings`), summary.headline);
  }
}

/** A sweep of two keys: cells, contours, hovering, clicking, and choosing a setting. */
async function heatmap(name, { page, summary, elements }) {
  check(`${name}: 100 settings`, summary.settings.length === 100);
  check(`${name}: few elements`, elements < 2500, elements);
  check(`${name}: 100 cells`, (await page.$$eval('#sweep [data-mark="rect"] rect, #sweep [data-mark="rect"] path', (list) => list.length)) >= 100);
  check(`${name}: contours`, (await page.$$eval('#sweep [data-mark="contour"] path', (list) => list.length)) > 0);
  const before = await page.inputValue(".bar select");
  await page.click('.bar button[aria-label="Next setting"]');
  const after = await page.inputValue(".bar select");
  check(`${name}: the next setting is shown`, Number(after) === Number(before) + 1, [before, after]);
  const { text } = summary.settings[after].headline;
  check(`${name}: with its own headline`, (await page.textContent('[aria-live="polite"]')) === `${text}.`);
  await page.locator("#sweep .chart svg").last().scrollIntoViewIfNeeded();
  const box = await page.locator("#sweep .chart svg").last().boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.5);
  await page.waitForFunction(() => document.querySelector('#sweep [data-mark="tip"]')?.textContent);
  check(`${name}: hovering shows a value`, (await page.textContent('#sweep [data-mark="tip"]')).includes("delta_env = "));
  check(`${name}: the axes say what they are`, (await page.textContent("#sweep svg[aria-label*='along']")).includes("environment heterogeneity (delta_env)"));
  check(`${name}: colours have a key`, (await page.locator("#sweep .key svg").count()) === 1);
  await page.mouse.click(box.x + box.width * 0.3, box.y + box.height * 0.5);
  check(`${name}: a click chooses a setting`, (await page.inputValue(".bar select")) !== after);
  await tables(name, page);
  await keyboard(name, page);
  await accessible(name, page);
}

/** Every kind of method has its own colour, which plots in Python share. */
async function coloured(name, { page }) {
  const { palette, alone, kinds } = JSON.parse(readFileSync("python/affpcl/method_colours.json", "utf8"));
  const found = await page.$$eval("#curves .controls .controls label", (list) => list.map((l) => [l.textContent, getComputedStyle(l.querySelector(".swatch")).backgroundColor]));
  const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;
  for (const [method, colour] of found)
    if (method !== "guarded") check(`${name}: the colour of ${method}`, colour === rgb((method === "independent" ? alone : palette[kinds[method]])[0]), colour);
  check(`${name}: all colours differ`, new Set(found.map(([, colour]) => colour)).size === found.length, found);
}

const cases = {};

for (const name of make.figures()) {
  cases[name] = async () => {
    const folder = make.figure(name);
    const opened = await common(name, folder);
    headlines(name, folder, opened.summary);
    const found = await charts(opened.page);
    check(`${name}: curves are drawn`, found.curves?.marks > 0, found);
    if (opened.summary.settings.length > 1) check(`${name}: the sweep is drawn`, found.sweep?.marks > 0, found);
    await plainHeadline(name, folder, opened);
    await claimed(name, folder, opened);
    if (name === "fig-comparison") await coloured(name, opened);
    if (opened.summary.settings[0].methods.some((m) => m.vs_independent)) check(`${name}: agents are drawn`, found.agents?.marks > 0, found);
    await toggles(name, opened.page);
    if (name === "fig-heatmap") await heatmap(name, opened);
    quiet(name, opened);
    await opened.close();
  };
}

cases.demo = async () => {
  const folder = make.demo("demo");
  const opened = await common("demo", folder);
  headlines("demo", folder, opened.summary);
  await plainHeadline("demo", folder, opened);
  await tables("demo", opened.page);
  for (const id of ["curves", "weights"]) await pictures("demo", opened.page, id);
  await opened.page.locator("#curves .controls label", { hasText: "logarithmic" }).click();
  check("demo: a linear axis can be chosen", !(await opened.page.locator("#curves .controls input").first().isChecked()));
  await opened.page.selectOption("#agents select", "guarded");
  check("demo: agents of another method", (await opened.page.inputValue("#agents select")) === "guarded");
  await accessible("demo", opened.page);
  quiet("demo", opened);
  await opened.close();
  const dark = await open(join(folder, "report.html"), { dark: true });
  await accessible("demo, dark", dark.page);
  await dark.close();
  const phone = await open(join(folder, "report.html"), { width: 390, phone: true });
  check("demo: a phone need not scroll sideways", await phone.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  quiet("demo, phone", phone);
  await phone.close();
  const paper = await open(join(folder, "report.html"), { width: 720 });
  await paper.page.emulateMedia({ media: "print" });
  await paper.page.waitForTimeout(300);
  check("demo: paper is wide enough", await paper.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await paper.close();
};

for (const [name, expected] of Object.entries({
  oneMethod: ["curves"], noAlone: ["curves", "weights"], oneAgent: ["curves", "agents"], oneReplicate: ["curves", "agents"],
  manyAgents: ["curves", "agents", "distance", "weights"], alarm: ["curves", "agents", "weights"],
}))
  cases[name] = async () => {
    const folder = make[name]();
    const opened = await common(name, folder);
    if (name !== "oneReplicate") headlines(name, folder, opened.summary);
    const found = await charts(opened.page);
    for (const id of expected) check(`${name}: ${id} is drawn`, found[id]?.marks > 0, found);
    if (name === "alarm") check("alarm: it is said in words", (await opened.page.textContent(".warn")).includes("has a mean that is not 0"));
    if (name === "manyAgents") {
      const bars = await opened.page.$$eval('#agents [data-mark="rect"] rect', (l) => l.length);
      check("manyAgents: 2,000 are counted in bins", bars > 10 && bars < 200, bars);
      check("manyAgents: few elements", (await opened.page.evaluate(() => document.querySelectorAll("*").length)) < 6000);
      await tables(name, opened.page);
    }
    await toggles(name, opened.page);
    quiet(name, opened);
    await opened.close();
  };

cases.diverged = async () => {
  const opened = await common("diverged", make.diverged());
  check("diverged: it is said", (await opened.page.textContent(".warn")).startsWith("Diverged:"));
  check("diverged: and in the headline", opened.summary.headline.includes("diverged"));
  quiet("diverged", opened);
  await opened.close();
};

cases.empty = async () => {
  const opened = await common("empty", make.empty());
  check("empty: it says so", (await opened.page.textContent(".warn")).includes("interrupted"));
  await accessible("empty", opened.page);
  quiet("empty", opened);
  await opened.close();
};

cases.names = async () => {
  const folder = make.names();
  const opened = await common("names", folder);
  headlines("names", folder, opened.summary);
  const { page } = opened;
  const shown = await page.$$eval("#curves .controls .controls label", (list) => list.map((l) => l.textContent));
  check("names: as they are", JSON.stringify(shown) === JSON.stringify(opened.summary.settings[0].methods.map((m) => m.name)), shown);
  check("names: no script of theirs", (await page.$$eval("script", (list) => list.length)) === 2);
  await toggles("names", page);
  await tables("names", page);
  await accessible("names", page);
  quiet("names", opened);
  await opened.close();
};

const FIT = ["gain", "scores", "distance", "central", "coefficients", "affinity"];

async function fitted(name, folder, expected = FIT) {
  const opened = await common(name, folder);
  const found = await charts(opened.page);
  for (const id of expected) check(`${name}: ${id} is drawn`, found[id]?.marks > 0, found);
  await tables(name, opened.page);
  const { summary } = opened;
  if (summary.score) {
    const rows = summary.agents.reduce((sum, a) => sum + a.rows, 0);
    const loss = (kind) => summary.agents.reduce((sum, a) => sum + a.rows * a.score[kind], 0) / rows;
    const said = numbersIn(summary.headline.split(/held-out rows|learnt from,/)[1]);
    near(`${name}: says the error alone`, said[0], loss("alone"), 1e-3);
    near(`${name}: says the error given`, said[1], loss("given"), 1e-3);
    const gain = numbersIn(summary.headline.split("; gain ")[1]);
    near(`${name}: says the gain`, gain[0], loss("alone") - loss("given"), 1e-2);
    const verdicts = (word) => summary.agents.filter((a) => a.verdict === word).length;
    check(`${name}: says who gained`, summary.headline.includes(`of ${summary.agents.length} agents gained: ${verdicts("gained")} surely, ${verdicts("lost")} surely lost`), summary.headline);
    const least = summary.agents.reduce((a, b) => (b.gain.mean < a.gain.mean ? b : a));
    const worst = summary.headline.split(`worst agent ${least.agent}: gain `)[1];
    near(`${name}: names the worst agent`, numbersIn(worst ?? "")[0] ?? NaN, least.gain.mean, 1e-2);
  }
  return opened;
}

/** Searching, sorting and turning the pages of the table of agents; the card of one. */
async function agentsFound(name, { page, summary }) {
  const cells = (column) => page.$$eval(`#agents tbody tr td:nth-child(${column})`, (list) => list.map((td) => td.textContent));
  const shown = await cells(1);
  const reasons = summary.agents.filter((a) => a.why).length;
  check(`${name}: a page of agents`, shown.length === Math.min(25, summary.agents.length), shown.length);
  if (reasons) check(`${name}: agents with a reason come first`, summary.agents.find((a) => a.agent === shown[0]).why !== "", shown[0]);
  const heads = await page.$$eval("#agents thead th", (list) => list.map((th) => th.textContent));
  const share = heads.findIndex((head) => head.startsWith("gain, %")) + 1;
  const first = summary.agents.find((a) => a.agent === shown[0]);
  if (share > 0 && first.score.given + first.gain.mean > 0)
    near(`${name}: the gain in per cent is of the expected error`, numbersIn((await cells(share))[0])[0],
      (100 * first.gain.mean) / (first.score.given + first.gain.mean), 0.01);
  await page.click("#agents th:nth-child(2) button");
  const rows = (await cells(2)).map((text) => Number(text.replaceAll(",", "")));
  check(`${name}: sorted by rows`, rows[0] === Math.max(...summary.agents.map((a) => a.rows)) && rows.every((n, i) => !i || n <= rows[i - 1]), rows.slice(0, 5));
  const one = summary.agents[summary.agents.length >> 1];
  await page.fill("#agents input", one.agent);
  check(`${name}: found by its name`, (await cells(1)).includes(one.agent));
  await page.locator("#agents tbody button", { hasText: one.agent }).first().click();
  const card = await page.textContent("#agent");
  check(`${name}: its card has its name and rows`, card.startsWith(one.agent) && card.includes(`${one.rows.toLocaleString("en")} row`), card.slice(0, 200));
  near(`${name}: and its gain`, numbersIn(card.split("the gain is ")[1] ?? "")[0] ?? NaN, one.gain.mean, 1e-3);
  check(`${name}: the card has the focus`, await page.evaluate(() => document.activeElement.id === "agent"));
  await page.fill("#agents input", "no such agent");
  check(`${name}: nothing is found`, (await cells(1)).length === 0);
  await page.fill("#agents input", "");
}

cases["ten thousand"] = async () => {
  const name = "ten thousand";
  const opened = await fitted(name, make.crowd(10000), [...FIT, "predicted", "residuals"]);
  const { page, summary } = opened;
  check(`${name}: few elements`, opened.elements < 5000, opened.elements);
  check(`${name}: all are in the table`, (await page.textContent("#agents .turning")).includes("of 10,000"));
  await agentsFound(name, opened);
  await page.click('#agents button[aria-label="Next page"]');
  check(`${name}: the next page`, (await page.textContent("#agents .turning")).includes("26 to 50 of 10,000"));
  const bars = await page.$$eval('#gain [data-mark="rect"] rect', (l) => l.length);
  check(`${name}: gains are counted in bins`, bars > 5 && bars < 300, bars);
  check(`${name}: the central model is per unit`, Math.abs(numbersIn((await page.textContent("#central svg")).split("size").at(-1)).find((v) => v > 1)) > 1);
  await accessible(name, page);
  quiet(name, opened);
  await opened.close();
  const phone = await open(join(tmp, "crowd-10000", "report.html"), { width: 400, phone: true, dark: true });
  check(`${name}: a phone need not scroll sideways`, await phone.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await accessible(`${name}, phone`, phone.page);
  await phone.close();
};

cases.shops = async () => {
  const opened = await fitted("shops", make.fit("shops", "examples/shops.csv", "--target", "sales", "--agent", "shop"), [...FIT, "predicted", "residuals"]);
  await agentsFound("shops", opened);
  for (const id of ["gain", "predicted", "affinity"]) await pictures("shops", opened.page, id);
  const { summary, page } = opened;
  const lead = numbersIn(await page.textContent(".lead"));
  near("shops: the plain headline says the change", lead[0], 100 * (1 - summary.score.mse.given / summary.score.mse.alone), 0.01);
  near("shops: and how many gain", lead[1], (100 * summary.expected_to_gain) / summary.agents.length, 0.01);
  const inspected = JSON.parse(make.inspect(join(tmp, "shops")));
  await page.click("#central summary");
  await page.waitForSelector("#central tbody");
  const centre = await page.$$eval("#central tbody tr", (list) => list.map((tr) => [...tr.children].map((td) => td.textContent)));
  for (const row of inspected) {
    const cells = centre.find(([coefficient]) => coefficient === row.coefficient);
    ["value", "lo", "hi", "spread"].forEach((key, i) => near(`shops: ${row.coefficient} of the centre: ${key}`, Number(cells[i + 1]), Number(row[key]), 1e-3));
  }
  await page.click("#central summary");
  await opened.page.selectOption("#coefficients select", { label: "footfall" });
  await keyboard("shops", opened.page);
  await accessible("shops", opened.page);
  quiet("shops", opened);
  await opened.close();
};

cases["not scored"] = async () => {
  const opened = await fitted("not scored", make.fit("unscored", "examples/shops.csv", "--target", "sales", "--agent", "shop", "--no-score"), ["central", "coefficients", "affinity"]);
  quiet("not scored", opened);
  await opened.close();
};

/** A page without standard errors says nothing of any, and what its rows are. */
async function streamed(name, opened, measure) {
  const { page } = opened;
  const text = await page.textContent("main");
  check(`${name}: no row was left out`, !text.includes("left out"), text.match(/.{40}left out/)?.[0]);
  check(`${name}: rows are predicted before they are learnt from`, text.includes(`${measure}, predicted before learning`));
  check(`${name}: nothing is NaN`, !/NaN|undefined/.test(text), text.match(/.{40}(NaN|undefined)/)?.[0]);
  check(`${name}: no interval of a coefficient is claimed`, !(await page.textContent("#coefficients .note")).includes("90 %"));
  const drawn = await page.$$eval('#coefficients [data-mark="rule"] line, #coefficients [data-mark="rect"] rect', (list) => list.length);
  check(`${name}: nor drawn: only the centre and 0 are lines`, drawn === 2, drawn);
  await page.click("#coefficients summary");
  await page.waitForSelector("#coefficients tbody");
  const head = await page.$$eval("#coefficients th", (list) => list.map((th) => th.textContent));
  check(`${name}: no column of errors`, !head.includes("se"), head);
  await page.click("#coefficients summary");
  await accessible(name, page);
}

cases["stream, shops"] = async () => {
  const name = "stream, shops";
  const opened = await fitted(name, make.fit("stream", "examples/shops.csv", "--target", "sales", "--agent", "shop", "--solver", "stream"));
  await streamed(name, opened, "Mean squared error");
  const varied = await opened.page.$eval("#coefficients select", (e) => e.selectedOptions[0].textContent);
  check(`${name}: the coefficient that varies most is shown`, varied === "footfall", varied);
  quiet(name, opened);
  await opened.close();
};

cases["stream, values"] = async () => {
  const name = "stream, values";
  const opened = await fitted(name, make.values());
  await streamed(name, opened, "Squared TD error");
  check(`${name}: the title is of values`, (await opened.page.textContent("h1")) === "value: one model per agent");
  check(`${name}: columns are as they are`, (await opened.page.textContent("#coefficients .note")).startsWith("Columns as they are"));
  quiet(name, opened);
  await opened.close();
};

cases["stream, outcomes"] = async () => {
  const name = "stream, outcomes";
  const opened = await fitted(name, make.weighed("weighed-stream", "--solver", "stream"));
  await streamed(name, opened, "Mean squared error");
  check(`${name}: the title names the outcomes`, (await opened.page.textContent("h1")) === "speed + comfort: one model per agent");
  check(`${name}: one channel for all of them`, (await opened.page.$$eval("#coefficients select", (list) => list.length)) === 1);
  quiet(name, opened);
  await opened.close();
};

cases["exact, outcomes"] = async () => {
  const name = "exact, outcomes";
  const opened = await fitted(name, make.weighed("weighed-exact"));
  const { page } = opened;
  const options = await page.$$eval("#coefficients select", (list) => list.map((s) => [...s.options].map((o) => o.textContent)));
  check(`${name}: channels are named by outcomes`, JSON.stringify(options[1]) === '["speed","comfort"]', options);
  check(`${name}: and called so`, (await page.$$eval("#coefficients .choice label", (list) => list.map((l) => l.textContent))).includes("Outcome"));
  await page.locator("#coefficients select").nth(1).selectOption({ label: "comfort" });
  check(`${name}: the axis names the outcome`, (await page.textContent("#coefficients svg")).includes("comfort per unit of "));
  check(`${name}: with intervals`, (await page.textContent("#coefficients .note")).includes("90 % intervals"));
  quiet(name, opened);
  await opened.close();
};

cases.affinity = async () => {
  const folder = make.affinity();
  const path = join(folder, "report.html");
  make.run("report", folder, "--force");
  const opened = await open(path);
  const { page } = opened;
  const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
  const found = await charts(page);
  for (const id of ["prospects", "alike"]) check(`affinity: ${id} is drawn`, found[id]?.marks > 0, found);
  const lead = numbersIn(await page.textContent(".lead"));
  check("affinity: the headline counts the agents", lead[0] === summary.prospects.gain && lead[1] === summary.agents.length, lead);
  const rows = await page.$$eval("#agents tbody tr", (list) => list.map((tr) => [...tr.children].map((td) => td.textContent)));
  const least = summary.agents.reduce((a, b) => (b.predicted_loss.value < a.predicted_loss.value ? b : a));
  check("affinity: the largest gain comes first", rows[0][0] === least.agent, rows[0]);
  near("affinity: its loss", numbersIn(rows[0][3])[0], least.predicted_loss.value, 1e-3);
  check("affinity: no empty column", rows[0].every((_, c) => rows.some((row) => row[c] !== "–")), rows[0]);
  check("affinity: nothing is NaN", !/NaN|undefined/.test(await page.textContent("main")));
  await tables("affinity", page);
  await keyboard("affinity", page);
  await accessible("affinity", page);
  quiet("affinity", opened);
  await opened.close();
};

cases.namedAgents = async () => {
  const opened = await fitted("namedAgents", make.namedAgents(), [...FIT, "calibration", "confusion"]);
  const text = await opened.page.textContent("main");
  for (const name of ["AUC", "Brier score"]) check(`namedAgents: the ${name} is shown`, text.includes(`${name}, held-out rows`));
  const cells = await opened.page.$$eval(".card td", (list) => list.map((td) => td.textContent));
  check("namedAgents: as they are", cells.includes(HOSTILE));
  check("namedAgents: no script of theirs", (await opened.page.$$eval("script", (list) => list.length)) === 2);
  quiet("namedAgents", opened);
  await opened.close();
};

cases.school = async () => {
  const folder = make.school(resolve(root, "../shared/data/school/school.csv"));
  if (!folder) return console.log("school: skipped, no shared data");
  const opened = await fitted("school", folder);
  check("school: 139 agents", opened.summary.agents.length === 139);
  check("school: all are drawn", (await opened.page.$$eval('#gain [data-mark="rect"] rect, #gain [data-mark="rect"] path', (l) => l.length)) === 139);
  await accessible("school", opened.page);
  quiet("school", opened);
  await opened.close();
};

cases.compared = async () => {
  const [a, b, c] = [make.demo("first"), make.demo("second", "--set", "run.step_size=0.015"), make.demo("third", "--seed", "9")];
  const read = (folder) => JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
  for (const [other, paired] of [[b, true], [c, false]]) {
    const out = join(tmp, `compared-${paired}.html`);
    make.run("report", a, other, "--out", out);
    const opened = await open(out);
    const { page } = opened;
    const lead = await page.textContent(".lead");
    check("compared: says whether it is paired", lead.endsWith(paired ? "(paired, replicate by replicate)." : "(not paired)."), lead);
    const found = await charts(page);
    for (const id of ["ratios", "curves"]) check(`compared: ${id} is drawn`, found[id]?.marks > 0, found);
    await page.click("#ratios summary");
    await page.waitForSelector("#ratios tbody");
    const rows = await page.$$eval("#ratios tbody tr", (list) => list.map((tr) => [...tr.children].map((td) => td.textContent)));
    const want = read(a).settings.flatMap((s, i) => s.methods.map((m, k) => read(other).settings[i].methods[k].mse.mean / m.mse.mean));
    check("compared: a row for each method and setting", rows.length === want.length, rows.length);
    rows.forEach((row, i) => near(`compared: row ${i}`, Number(row[1]), want[i], 1e-3));
    await accessible("compared", page);
    quiet("compared", opened);
    await opened.close();
  }
  const [x, y] = [make.fit("fit-a", "examples/shops.csv", "--target", "sales", "--agent", "shop"), make.fit("fit-b", "examples/shops.csv", "--target", "sales", "--agent", "shop", "--exclude", "weather")];
  make.run("report", x, y, "--out", join(tmp, "fits.html"));
  const opened = await open(join(tmp, "fits.html"));
  const loss = (folder) => read(folder).agents.reduce((sum, agent) => sum + agent.rows * agent.score.given, 0);
  near("compared fits: says the ratio", numbersIn(await opened.page.textContent(".lead"))[0], loss(y) / loss(x), 6e-3);
  check("compared fits: drawn", (await charts(opened.page)).agents?.marks > 0);
  quiet("compared fits", opened);
  await opened.close();
};

try {
  for (const [name, body] of Object.entries(cases)) {
    if (!name.includes(only)) continue;
    try {
      await body();
    } catch (error) {
      check(name, false, error.stack);
    }
  }
} finally {
  await browser.close();
  rmSync(tmp, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
