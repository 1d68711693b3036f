// Which methods are drawn: a row of check boxes, the same choice in every chart.
import { h, toggle } from "./dom.js";
import { updateFigures } from "./figure.js";

export function methodToggles(state) {
  const node = h("div", { class: "controls", role: "group", "aria-label": "Methods shown" });
  let drawn = "";
  /** Rebuilt only where the names changed, so that the focus stays where it is. */
  function sync(names) {
    for (const box of node.querySelectorAll("input")) box.checked = !state.hidden.has(box.value);
    if (drawn === names.join("\n")) return;
    drawn = names.join("\n");
    node.replaceChildren(...names.map((name) => {
      const label = toggle(name, !state.hidden.has(name), (on) => {
        state.hidden[on ? "delete" : "add"](name);
        updateFigures();
      }, state.colours.get(name));
      label.querySelector("input").value = name;
      return label;
    }));
  }
  return { node, sync };
}
