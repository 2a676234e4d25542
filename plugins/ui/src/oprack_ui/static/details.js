// The panel beside the graph: of the model, or of the box that was chosen, all that is known.

import { ask, byId, code, element } from "./dom.js";

let model;

/** box: the one that was chosen, or null. packs: by their colours. actions: unfold, fold, goInto and find. */
export async function tell(box, packs, actions) {
  const panel = byId("details");
  panel.classList.toggle("chosen", box !== null);
  panel.replaceChildren(legend(packs), ...(box ? aboutBox(box, actions) : []));
  panel.scrollTop = 0;
  if (box) return;
  model ??= await ask("api/model");
  if (!panel.classList.contains("chosen")) panel.replaceChildren(...aboutModel(model, actions), legend(packs));
}

function legend(packs) {
  return element("div", { className: "legend" }, ...packs.map((pack, i) =>
    element("span", {}, element("span", { className: `swatch pack-${i % 8}` }), pack)));
}

function aboutModel(found, actions) {
  const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  const size = `${count(found.parameters, "parameter")} of ${(found.parameter_bytes / 1e6).toFixed(1)} MB`;
  const variables = (title, list) => [
    element("dt", {}, title),
    ...list.map((v) => element("dd", {}, link(v.name, actions), ` ${v.dtype ?? "?"} [${(v.shape ?? []).map((d) => (d < 0 ? "?" : d)).join(", ")}]`)),
  ];
  const missing = found.missing_ops.length
    ? [element("p", { className: "bad" }, `No installed pack brings ${found.missing_ops.join(", ")}.`)] : [];
  return [
    element("h3", {}, found.name),
    element("p", {}, `${count(found.ops, "op")} in ${count(found.blocks, "block")}, ${size}`),
    ...missing,
    ...(found.parameter_problem ? [element("p", { className: "bad" }, `It can't run: ${found.parameter_problem}`)] : []),
    element("dl", {}, ...variables("inputs", found.inputs), ...variables("outputs", found.outputs)),
    element("p", { className: "hint" }, "Wheel or two fingers: zoom. Drag: move. Arrow keys: from box to box. Enter or a double click: unfold a chain, go into a block. / : find."),
  ];
}

const link = (name, actions, text = name) => {
  const made = element("button", { type: "button", className: "link", title: "find all that reads or writes it" }, text);
  made.addEventListener("click", () => actions.find(name));
  return made;
};

function aboutBox(box, actions) {
  const parts = [];
  const button = (text, act) => {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    parts.push(made);
  };
  if (box.kind === "chain") button(`unfold these ${box.details.length} ops`, () => actions.unfold(box));
  else if (box.key) button("fold this chain again", () => actions.fold(box));
  for (const block of box.details.flatMap((detail) => detail.blocks ?? [])) {
    button(`go into block ${block}`, () => actions.goInto(block));
  }
  return [...parts, ...box.details.flatMap((detail) => aboutNode(detail, actions))];
}

function aboutNode(given, actions) {
  if (given.op === undefined) return [element("h3", {}, link(given.name, actions, given.title))];
  const slots = given.slots.flatMap((slot) => [
    element("dt", {}, `${slot.direction} ${slot.slot}`),
    ...slot.variables.map(({ name, text }) => element("dd", {}, link(name, actions, text))),
  ]);
  const attrs = Object.entries(given.attrs).flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, code(value)),
  ]);
  const page = element("a", { href: `#op=${encodeURIComponent(given.op)}` }, "what it computes");
  return [
    element("h3", {}, given.title),
    element("p", { className: "hint" }, `op ${given.number} of the block, of ${given.pack}, `, page),
    element("dl", {}, ...slots, ...attrs),
  ];
}
