// Ops with search, one op, and which of its kernels would run.

import { ask, byId, code, element, table } from "./dom.js";

let facts;

export function showOps(found) {
  facts = found;
  byId("search").addEventListener("input", list);
  list();
  const ofHash = () => {
    if (location.hash.startsWith("#op=")) showOp(decodeURIComponent(location.hash.slice(4)));
  };
  window.addEventListener("hashchange", ofHash);
  ofHash();
}

function list() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (op) => words.every((word) => `${op.op} ${op.pack}`.toLowerCase().includes(word));
  const found = facts.ops.filter(fits);
  byId("count").textContent = `${found.length} of ${facts.ops.length} ops`;
  byId("found").replaceChildren(...found.map((op) => {
    const button = element("button", { type: "button" }, op.op, element("small", {}, op.pack.replace(/^oprack-/, "")));
    button.addEventListener("click", () => showOp(op.op));
    return element("li", {}, button);
  }));
}

async function showOp(name) {
  const op = await ask(`api/op/${encodeURIComponent(name)}`);
  history.replaceState(null, "", `#op=${encodeURIComponent(name)}`);
  byId("op").replaceChildren(
    element("h2", {}, op.op),
    element("p", { className: "hint" }, `${op.pack}, version ${op.version} of the op`),
    element("div", { className: "doc" }, ...op.doc.map(part)),
    ...choice(op),
    ...slots("Inputs", op.inputs),
    ...slots("Outputs", op.outputs),
    ...attributes(op.attrs),
    element("h3", {}, "Gradient"),
    element("p", {}, ...gradient(op.gradient)),
  );
  byId("op").scrollTop = 0;
  for (const button of byId("found").querySelectorAll("button")) {
    button.classList.toggle("chosen", button.firstChild.textContent === name);
  }
}

/** A part of the documentation: text, or a formula of which the server made MathML. */
function part(given) {
  if (given.text !== undefined) return given.text;
  if (!given.mathml) return code(given.formula);
  const parsed = new DOMParser().parseFromString(given.mathml, "application/xml").documentElement;
  return parsed.localName === "math" ? document.importNode(parsed, true) : code(given.formula);
}

function gradient(found) {
  if (found.kind === "none") return ["none: the op is not differentiable"];
  if (found.kind === "empty") return ["none on purpose: nothing flows back"];
  if (!found.ops.length) return [found.note ?? "depends on attributes"];
  return found.ops.flatMap((name) => {
    const link = element("a", { href: `#op=${encodeURIComponent(name)}` }, name);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      showOp(name);
    });
    return [link, " "];
  });
}

function slots(title, found) {
  if (!found.length) return [];
  const rows = found.map((slot) => [code(slot.name), slot.flags.join(", "), slot.doc.replaceAll("$", "")]);
  return [element("h3", {}, title), table(["Slot", "", "Meaning"], rows)];
}

function attributes(found) {
  const shown = found.filter((attr) => !attr.flags.includes("extra"));
  if (!shown.length) return [];
  const rows = shown.map((attr) => [
    code(attr.name), attr.type.toLowerCase(), code(JSON.stringify(attr.default)),
    [attr.doc, attr.checks.length ? `Expected: ${attr.checks.join(", and ")}.` : ""].join(" ").replaceAll("$", ""),
  ]);
  return [element("h3", {}, "Attributes"), table(["Attribute", "Type", "Default", "Meaning"], rows)];
}

/** Which kernel would run, for a place, a dtype and a library. */
function choice(op) {
  const select = (label, values, chosen) => {
    const options = values.map((value) => element("option", { value, selected: value === chosen }, value));
    return [label, element("select", { "aria-label": label }, ...options)];
  };
  const [place, dtype, library] = [
    select("Place", facts.places, "cpu"),
    select("Dtype", facts.dtypes, "float32"),
    select("Library", facts.libraries, "plain"),
  ];
  const result = element("div", { className: "choice" });
  const update = async () => {
    const query = new URLSearchParams({ place: place[1].value, dtype: dtype[1].value, library: library[1].value });
    const found = await ask(`api/op/${encodeURIComponent(op.op)}/choice?${query}`);
    result.replaceChildren(...candidates(found), element("p", { className: "note" }, found.note));
  };
  for (const [, box] of [place, dtype, library]) box.addEventListener("change", update);
  update();
  const controls = [place, dtype, library].map(([label, box]) => element("label", {}, `${label} `, box));
  return [element("h3", {}, "Which kernel runs"), element("div", { className: "controls" }, ...controls), result];
}

function candidates(found) {
  const turn = (kernel) => found.runs.indexOf(kernel.function);
  const says = (kernel) => {
    if (kernel.reason) return kernel.reason;
    if (turn(kernel) === 0) return "runs";
    return turn(kernel) > 0 ? "takes over" : "fits, but another one runs";
  };
  const rows = found.candidates.map((kernel) => [
    says(kernel), kernel.pack, kernel.library === "plain" ? "" : kernel.library, String(kernel.priority),
    kernel.dtypes.join(", "), kernel.condition, code(kernel.function),
  ]);
  if (!rows.length) return [];
  const style = (k) => {
    if (found.candidates[k].reason) return "lost";
    return turn(found.candidates[k]) === 0 ? "runs" : "";
  };
  return [table(["", "Pack", "Library", "Priority", "Dtypes", "When", "Function"], rows, { numbers: [3], style })];
}

export function showPacks(found) {
  const rows = found.packs.map((pack) => [
    pack.name, pack.distribution, pack.version,
    element("span", { className: pack.status === "ok" ? "good" : "bad" }, pack.status),
    String(pack.ops.length), pack.hooks.map((hook) => hook.replace("oprack_", "")).join(", "), pack.error,
  ]);
  byId("packs").replaceChildren(
    element("h2", {}, `${rows.length} packs`),
    table(["Pack", "Distribution", "Version", "Status", "Ops", "Brings", ""], rows, { numbers: [4] }),
  );
}
