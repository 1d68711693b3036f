// A table that can be sorted by its heads, searched, and turned over page by page.
import { h, number } from "./dom.js";

export const text = (value) => ({ shown: value, by: value });
export const numeric = (value, shown = number(value, 3)) => ({ shown, by: Number.isFinite(value) ? value : Infinity, numeric: true });

/**
 * columns: [name, row => {shown, by, numeric, tone}]; rows() gives the rows in their own order, which is the first one
 * where `start` is -1. page: rows on a page, 0 for all. search: a row's text to look into. down: columns that start large.
 */
export function sortable(caption, columns, rows, start = -1, { page = 0, search = null, down = [] } = {}) {
  const state = { column: start, down: down.includes(start), first: 0, words: "" };
  const body = h("tbody");
  const heads = columns.map(([name], c) => h("th", { scope: "col", class: "sorts" },
    h("button", { type: "button", onclick: () => {
      state.down = state.column === c ? !state.down : down.includes(c);
      state.column = c;
      state.first = 0;
      fill();
    } }, name)));
  const turn = (by, label, words) => h("button", { type: "button", "aria-label": label, onclick: () => { state.first += by * page; fill(); } }, words);
  const [back, on] = [turn(-1, "Previous page", "‹"), turn(1, "Next page", "›")];
  const where = h("span", { "aria-live": "polite" });
  const box = search && h("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${caption}`, oninput: () => {
    state.words = box.value.toLowerCase();
    state.first = 0;
    fill();
  } });

  function chosen() {
    const all = state.words ? rows().filter((row) => search(row).toLowerCase().includes(state.words)) : [...rows()];
    if (state.column < 0) return all;
    const cell = columns[state.column][1];
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    const keyed = all.map((row) => [cell(row).by, row]);
    const known = keyed.filter(([by]) => by !== Infinity), rest = keyed.filter(([by]) => by === Infinity);  // what is missing comes last
    return [...known.sort((a, b) => order(a[0], b[0]) * (state.down ? -1 : 1)), ...rest].map(([, row]) => row);
  }
  function fill() {
    const all = chosen();
    if (state.first >= all.length) state.first = 0;
    const shown = page ? all.slice(state.first, state.first + page) : all;
    const first = rows()[0];
    heads.forEach((head, c) => head.classList.toggle("number", Boolean(first && columns[c][1](first).numeric)));
    heads.forEach((head, c) => head.setAttribute("aria-sort", c !== state.column ? "none" : state.down ? "descending" : "ascending"));
    body.replaceChildren(...shown.map((row) => h("tr", {}, columns.map(([, make]) => {
      const { shown: words, numeric: right, tone } = make(row);  // tone: a class
      return h("td", { class: [right ? "number" : "", tone ?? ""].join(" ").trim() || null }, words);
    }))));
    back.disabled = state.first === 0;
    on.disabled = !page || state.first + page >= all.length;
    where.textContent = all.length ? `${(state.first + 1).toLocaleString("en")} to ${(state.first + shown.length).toLocaleString("en")} of ${all.length.toLocaleString("en")}` : "none found";
    turning.hidden = Boolean(page) && rows().length <= page;
  }
  const turning = h("div", { class: "controls turning" }, box, page ? [back, where, on] : null);
  const node = h("div", {}, page || search ? turning : null,
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
      h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body)));
  fill();
  return { node, fill };
}
