// The README's picture: node screenshot.mjs PAGE.html OUT.png. The headline, the sweep and one setting, without what is below.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [page, out] = process.argv.slice(2);
const browser = await launch();
const tab = await browser.newPage({ viewport: { width: 1100, height: 1000 }, colorScheme: "light" });
await tab.goto(pathToFileURL(resolve(page)).href);
await tab.waitForSelector("html[data-drawn]");
// Whole charts only: down to the end of what each agent gained.
const height = await tab.evaluate(() => document.getElementById("agents").getBoundingClientRect().bottom + scrollY + 8);
await tab.screenshot({ path: out, fullPage: true, clip: { x: 0, y: 0, width: 1100, height } });
await browser.close();
