// Elements, numbers as text, and small widgets. All text goes in as text nodes, so nothing in the data is ever markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Four digits, as short as they can be written; a dash for what is missing. */
export function number(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-4 || size >= 1e6) return x.toExponential(digits - 1).replace(/\.?0+e/, "e");
  const text = x.toPrecision(digits);
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : String(Number(text));
}

export function interval(lo, hi) {
  return Number.isFinite(lo) && lo !== null ? `[${number(lo, 3)}, ${number(hi, 3)}]` : "";
}

export function withInterval(estimate, digits = 3) {
  return `${number(estimate.mean, digits)} ${interval(estimate.lo, estimate.hi)}`.trim();
}

export function count(n, word) {
  return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}

let labels = 0;

/** A labelled <select>; `options` are [value, text]. */
export function choice(label, options, value, onchange) {
  const id = `choice-${++labels}`;
  const select = h("select", { id, onchange: () => onchange(select.value) },
    options.map(([option, text]) => h("option", { value: option }, text)));
  select.value = value;
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}

/** A coloured mark and its name. */
export function key(name, colour) {
  return h("span", { class: "toggle" }, h("span", { class: "swatch block", style: `background:${colour}` }), name);
}

export function toggle(label, checked, onchange, swatch = null) {
  const box = h("input", { type: "checkbox", onchange: () => onchange(box.checked) });
  box.checked = checked;
  const colour = swatch && h("span", { class: "swatch", style: `background:${swatch}` });
  return h("label", { class: "toggle" }, box, colour, label);
}

function csvField(value) {
  const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv({ columns, rows }) {
  const plain = (value) => (typeof value === "number" ? Number(value.toPrecision(6)) : value);
  return [columns, ...rows].map((row) => row.map((value) => csvField(plain(value))).join(",")).join("\n") + "\n";
}

export function saveBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function saveText(name, text, type) {
  saveBlob(name, new Blob([text], { type }));
}

const MOST_ROWS = 200;  // of a table behind a figure; its CSV file has all

export function tableOf({ columns, rows }, caption) {
  const cell = (value) => {
    const numeric = typeof value === "number" || value === null;
    return h("td", { class: numeric ? "number" : null }, numeric ? number(value) : String(value));
  };
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((name, c) =>
        h("th", { scope: "col", class: typeof rows[0]?.[c] === "number" ? "number" : null }, name)))),
      h("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => h("tr", {}, row.map(cell))))),
    rows.length > MOST_ROWS ? h("p", { class: "note" }, `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en")} rows; the CSV file has all.`) : null);
}
