// The page: which view is shown, and the views of a model that are tables.

import { ask, byId, element, table } from "./dom.js";
import { draw, prepareGraph } from "./graph.js";
import { showOps, showPacks } from "./ops.js";

const OF_A_MODEL = ["graph", "passes", "profile"];
const milliseconds = (value) => `${value.toFixed(value < 10 ? 3 : 1)} ms`;
const entered = new Set();
const enter = { graph: () => draw(), passes: showPasses, profile: showProfile };

function choose(name) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
  for (const button of document.querySelectorAll("nav button")) {
    button.classList.toggle("chosen", button.dataset.view === name);
  }
  if (entered.has(name)) return;
  entered.add(name);
  enter[name]?.();
}

async function showPasses() {
  byId("passes").replaceChildren(element("p", { className: "hint" }, "The passes run ..."));
  const found = await ask("api/model/passes");
  const worked = found.passes.filter((pass) => pass.matches || pass.error);
  const rows = worked.map((pass) => [
    pass.pass, pass.pack, pass.stage, String(pass.matches), `${pass.ops_before} → ${pass.ops_after}`,
    pass.strict ? "" : "order of sums or rounding", milliseconds(pass.milliseconds), pass.error,
  ]);
  const rest = `${found.passes.length - worked.length} more passes found nothing to do. The tab Graph draws both programs.`;
  byId("passes").replaceChildren(
    element("h2", {}, "What the passes did"),
    table(["Pass", "Pack", "Stage", "Matches", "Ops", "Changes", "Took", ""], rows, { numbers: [3, 6] }),
    element("p", { className: "hint" }, rest),
    element("div", { className: "columns" }, counts("Before", found.before), counts("After", found.after)),
  );
}

function counts(title, ops) {
  const sum = ops.reduce((all, op) => all + op.count, 0);
  const rows = ops.map((op) => [op.op, String(op.count), op.pack]);
  return element("div", {}, element("h3", {}, `${title}: ${sum} ops`), table(["Op", "Count", "Pack"], rows, { numbers: [1] }));
}

async function showProfile() {
  const model = await ask("api/model");
  const boxes = model.inputs.map((input) => {
    const dims = (input.shape ?? []).map((d) => (d < 0 ? 1 : d)).join(", ");
    return [input, element("input", { type: "text", value: dims, "aria-label": `dims of ${input.name}` })];
  });
  const result = element("div", {});
  const button = element("button", { type: "button", id: "run" }, "run");
  button.addEventListener("click", async () => {
    const dims = (text) => text.split(/[\s,]+/).filter(Boolean).map(Number);
    const shapes = Object.fromEntries(boxes.map(([input, box]) => [input.name, dims(box.value)]));
    button.disabled = true;
    try {
      times(result, await ask("api/model/profile", { shapes }));
    } finally {
      button.disabled = false;
    }
  });
  const rows = boxes.map(([input, box]) => [input.name, input.dtype ?? "?", `[${input.shape ?? "?"}]`, box]);
  byId("profile").replaceChildren(
    element("h2", {}, "Where the time goes"),
    element("p", { className: "hint" }, "Runs on random numbers (zeros for inputs that are no floats), passes applied."),
    table(["Input", "Dtype", "Declared", "Dims"], rows),
    button,
    result,
  );
}

function times(result, found) {
  const whole = found.packs.reduce((sum, pack) => sum + pack.total_ms, 0) || 1;
  const share = (value) => [`${((100 * value) / whole).toFixed(1)} %`, element("meter", { min: 0, max: 1, value: value / whole })];
  const packs = found.packs.map((p) => [p.pack, milliseconds(p.total_ms), ...share(p.total_ms)]);
  const ops = found.ops.map((o) => [
    o.op, o.pack, String(o.calls), milliseconds(o.total_ms), milliseconds(o.mean_ms), ...share(o.total_ms),
  ]);
  const runs = `First run ${milliseconds(found.first_ms)}, later ones ${milliseconds(found.median_ms)}.`;
  result.replaceChildren(
    element("p", {}, `${runs} Op by op, as below, a run takes longer.`),
    element("h3", {}, "By pack"),
    table(["Pack", "Time", "Share", ""], packs, { numbers: [1, 2] }),
    element("h3", {}, "By op"),
    table(["Op", "Pack", "Calls", "Time", "Mean", "Share", ""], ops, { numbers: [2, 3, 4, 5] }),
  );
}

const facts = await ask("api/packs");
for (const button of document.querySelectorAll("nav button")) {
  button.hidden = !facts.model && OF_A_MODEL.includes(button.dataset.view);
  button.addEventListener("click", () => choose(button.dataset.view));
}
byId("model").textContent = facts.model ?? "";
if (facts.model) document.title = `${facts.model}, oprack`;
prepareGraph();
showPacks(facts);
showOps(facts);
const toOp = () => location.hash.startsWith("#op=");
choose(facts.model && !toOp() ? "graph" : "ops");
window.addEventListener("hashchange", () => toOp() && choose("ops"));
