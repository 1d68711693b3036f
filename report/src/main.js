import { benchmarkPage } from "./benchmark.js";
import { comparisonPage } from "./compare.js";
import { readData } from "./data.js";
import { updateFigures } from "./figure.js";
import { fitPage } from "./fit.js";
import { studyPage } from "./study.js";

const { results, comparison } = readData();
const page = document.getElementById("page");
const pages = { fit: fitPage, benchmark: benchmarkPage };
const build = comparison ? () => comparisonPage(results, comparison) : () => (pages[results[0].kind] ?? studyPage)(results[0]);
page.replaceChildren(...build());
document.title = `${document.querySelector("h1").textContent} · affpcl`;
updateFigures();
document.documentElement.dataset.drawn = "yes";
