// What surrounds the charts of every page: the headline above, where the numbers come from below.
import { h, number } from "./dom.js";

/** The headline is a plain sentence; `detail` has its numbers with their intervals. */
export function opening({ eyebrow, title, headline, detail = null }) {
  return h("header", {},
    h("p", { class: "eyebrow" }, eyebrow),
    h("h1", {}, title),
    headline ? h("p", { class: "lead" }, headline) : null,
    detail ? h("p", { class: "detail" }, detail) : null);
}

/** Tiles of [what, value, more]. */
export function tiles(list) {
  return h("dl", { class: "tiles" }, list.map(([what, value, more]) =>
    h("div", { class: "tile" }, h("dt", {}, what), h("dd", {}, value), more ? h("dd", {}, more) : null)));
}

export function warning(text) {
  return h("p", { class: "warn", role: "note" }, text);
}

function copyButton(text) {
  const button = h("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it by hand";
    }
  });
  return button;
}

const FACTS = [
  ["version", "affpcl"], ["seed", "seed"], ["host", "host"], ["instruction_set", "instruction set"],
  ["compiler", "compiler"], ["threads", "threads"], ["ranks", "ranks"], ["seconds", "seconds"],
];

export function provenance(result, heading = "Where the numbers come from") {
  const { manifest } = result;
  const facts = FACTS.filter(([key]) => manifest[key] !== undefined)
    .map(([key, name]) => [h("dt", {}, name), h("dd", {}, key === "seconds" ? number(manifest[key], 3) : String(manifest[key]))]);
  return h("section", {},
    h("h2", {}, heading),
    h("div", { class: "card" },
      h("div", { class: "head" }, h("h3", {}, "The command that made this"), copyButton(manifest.command)),
      h("pre", {}, manifest.command),
      h("dl", { class: "facts" }, h("dt", {}, "folder"), h("dd", {}, result.folder), facts),
      h("details", {}, h("summary", {}, manifest.spec_toml ? "Spec" : "Settings of the fit"),
        h("pre", { tabindex: 0 }, manifest.spec_toml ?? JSON.stringify(manifest.spec, null, 1)))));
}

export function closing() {
  return h("footer", {},
    "Intervals are 90 %. Numbers on this page are rounded to about 4 digits; the files of the result folder hold all of them.");
}
