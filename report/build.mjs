// Bundles src/ into one HTML file without data: node build.mjs OUT.html
import { build } from "esbuild";
import { readdir, readFile, writeFile } from "node:fs/promises";

const [out = "report.html"] = process.argv.slice(2);
const source = new URL("src/", import.meta.url);

async function bundled(entry) {
  const result = await build({
    entryPoints: [new URL(entry, source).pathname],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: "es2020",
    legalComments: "none",
  });
  return { text: result.outputFiles[0].text, inputs: Object.keys(result.metafile.inputs) };
}

// The licences of what is bundled, each text once, after the packages that it covers.
async function licences(inputs) {
  const packages = new Set(inputs.map((path) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean));
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const folder = new URL(`node_modules/${name}/`, import.meta.url);
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? (await readFile(new URL(file, folder), "utf8")).trim() : "see its package";
    texts.set(text, [...(texts.get(text) ?? []), name]);
  }
  return [...texts].map(([text, names]) => `${names.join(", ")}:\n${text}`).join("\n\n");
}

const [page, script, style] = await Promise.all([
  readFile(new URL("template.html", source), "utf8"),
  bundled("main.js"),
  bundled("style.css"),
]);
const notice = await licences(script.inputs);
// Functions, since "$&" in a replacement string means something. A script must not hold its own end.
const html = page
  .replace("/* STYLE */", () => style.text)
  .replace("/* SCRIPT */", () => script.text.replaceAll("</script", "<\\/script"))
  .replace("LICENCES", () => notice.replaceAll("--", "- -"));
await writeFile(out, html);
