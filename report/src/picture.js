// A chart as a file of its own: all its parts as one SVG, or drawn as PNG, in the colours of the page.
import { saveBlob } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const MARGIN = 16;
const SHARP = 2;  // pixels of the PNG for one of the page

function element(name, attributes, text = null) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** Variables mean nothing outside of the page. */
function resolved(text) {
  const root = getComputedStyle(document.documentElement);
  return text.replace(/var\((--[\w-]+)\)/g, (whole, name) => root.getPropertyValue(name).trim() || whole);
}

function pictureOf(chart, title) {
  const outer = chart.getBoundingClientRect();
  const style = getComputedStyle(chart);
  const top = MARGIN + 24, width = Math.ceil(outer.width) + 2 * MARGIN, height = Math.ceil(outer.height) + top + MARGIN;
  const picture = element("svg", {
    xmlns: SPACE, width, height, viewBox: `0 0 ${width} ${height}`, color: style.color, "font-family": style.fontFamily, "font-size": 12,
  });
  picture.append(element("rect", { width, height, fill: getComputedStyle(document.body).getPropertyValue("--card").trim() || "white" }));
  picture.append(element("text", { x: MARGIN, y: MARGIN + 6, "font-size": 15, "font-weight": 600, fill: "currentColor" }, title));
  for (const part of chart.querySelectorAll("svg, h4, .words")) {
    const at = part.getBoundingClientRect();
    const x = at.left - outer.left + MARGIN, y = at.top - outer.top + top;
    if (part.tagName !== "svg") {
      picture.append(element("text", { x, y: y + 14, "font-size": 13, fill: "currentColor" }, part.textContent));
      continue;
    }
    const copy = part.cloneNode(true);
    for (const tip of copy.querySelectorAll('[data-mark="tip"]')) tip.remove();
    for (const [key, value] of Object.entries({ x, y, width: at.width, height: at.height, overflow: "visible" })) copy.setAttribute(key, value);
    picture.append(copy);
  }
  return { text: resolved(new XMLSerializer().serializeToString(picture)), width, height };
}

export function saveSvg(chart, title, name) {
  saveBlob(`${name}.svg`, new Blob([pictureOf(chart, title).text], { type: "image/svg+xml" }));
}

export async function savePng(chart, title, name) {
  const { text, width, height } = pictureOf(chart, title);
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SHARP * width;
  canvas.height = SHARP * height;
  const context = canvas.getContext("2d");
  context.scale(SHARP, SHARP);
  context.drawImage(image, 0, 0);
  canvas.toBlob((blob) => saveBlob(`${name}.png`, blob));
}
