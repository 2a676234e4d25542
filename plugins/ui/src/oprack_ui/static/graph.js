// The graph of a model: boxes and lines as the server placed them, to zoom, to move, to fold and to ask.

import { ask, byId, code, element } from "./dom.js";

const COLORS = ["#dbeafe", "#dcfce7", "#fef9c3", "#fee2e2", "#ede9fe", "#ffedd5", "#cffafe", "#fce7f3"];
const SVG = "http://www.w3.org/2000/svg";
const opened = new Set();
const view = { x: 0, y: 0, scale: 1 };
let drawn;
let group;
let packs = [];

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function prepareGraph() {
  const again = () => {
    opened.clear();
    draw(true);
  };
  byId("stage").addEventListener("change", () => {
    byId("block").value = "0";
    again();
  });
  byId("block").addEventListener("change", () => draw(true));
  byId("fold").addEventListener("change", again);
  byId("larger").addEventListener("click", () => zoom(1.25));
  byId("smaller").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", fit);
  const drawing = byId("drawing");
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
  }, { passive: false });
  let from = null;
  drawing.addEventListener("pointerdown", (event) => {
    from = [event.clientX - view.x, event.clientY - view.y];
  });
  window.addEventListener("pointerup", () => {
    from = null;
  });
  window.addEventListener("pointermove", (event) => {
    if (!from) return;
    [view.x, view.y] = [event.clientX - from[0], event.clientY - from[1]];
    place();
  });
}

export async function draw(anew = false) {
  const query = new URLSearchParams({
    stage: byId("stage").value,
    block: byId("block").value || "0",
    open: [...opened].join(","),
    fold: byId("fold").checked ? "1" : "0",
  });
  drawn = await ask(`api/model/graph?${query}`);
  if (byId("block").length !== drawn.blocks) {
    const numbers = Array.from({ length: drawn.blocks }, (_, i) => String(i));
    byId("block").replaceChildren(...numbers.map((i) => element("option", { value: i }, i)));
  }
  packs = [...new Set(drawn.boxes.flatMap((box) => box.packs))].sort();
  group = shape("g", {});
  group.append(...drawn.lines.map(line), ...drawn.boxes.map(box));
  const head = { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" };
  const arrow = shape("marker", head, shape("path", { d: "M0 0L8 4L0 8z", fill: "#94a3b8" }));
  byId("drawing").replaceChildren(shape("defs", {}, arrow), group);
  if (anew) fit();
  place();
  tell();
}

function line({ points, names }) {
  let path = `M${points[0]}`;
  for (let i = 1; i < points.length; i += 1) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    path += `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
  }
  return shape("path", { d: path, class: "edge", "marker-end": "url(#tip)" }, shape("title", {}, names.join("\n")));
}

function box(given) {
  const fill = given.packs.length ? COLORS[packs.indexOf(given.packs[0]) % COLORS.length] : "white";
  const dashes = given.kind === "chain" ? "5 3" : "none";
  const size = { width: given.width, height: given.height, rx: given.kind === "variable" ? 14 : 5 };
  const made = shape(
    "g", { class: `box ${given.kind}`, tabindex: 0, transform: `translate(${given.x} ${given.y})` },
    shape("rect", { ...size, fill, "stroke-dasharray": dashes }),
  );
  const top = given.height / 2 - (given.lines.length - 1) * 7.5 + 4;
  made.append(...given.lines.map((text, i) =>
    shape("text", { x: given.width / 2, y: top + i * 15, class: i ? "more" : "" }, text)));
  const act = () => {
    if (given.kind === "chain") {
      opened.add(given.key);
      draw();
    } else {
      for (const other of group.querySelectorAll(".chosen")) other.classList.remove("chosen");
      made.classList.add("chosen");
      tell(given);
    }
  };
  made.addEventListener("click", act);
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter") act();
  });
  return made;
}

/** What the panel says: which colour is whose, and all of the box that was chosen. */
function tell(given) {
  const legend = element("div", { className: "legend" }, ...packs.map((pack, i) => {
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = COLORS[i % COLORS.length];
    return element("span", {}, swatch, pack);
  }));
  const hint = element("p", { className: "hint" }, "Choose a box to see its slots and attributes.");
  const parts = given ? given.details.flatMap(detail) : [hint];
  if (given?.key) {
    const fold = element("button", { type: "button" }, "fold this chain again");
    fold.addEventListener("click", () => {
      opened.delete(given.key);
      draw();
    });
    parts.push(fold);
  }
  byId("details").replaceChildren(legend, ...parts);
}

function detail(given) {
  const parts = [element("h3", {}, given.title)];
  if (given.op === undefined) return parts;
  parts.push(element("p", { className: "hint" }, `op ${given.number} of the block, of ${given.pack}`));
  const slots = given.slots.flatMap((slot) => [
    element("dt", {}, `${slot.direction} ${slot.slot}`), ...slot.variables.map((text) => element("dd", {}, text)),
  ]);
  const attrs = Object.entries(given.attrs).flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, code(value)),
  ]);
  parts.push(element("dl", {}, ...slots, ...attrs));
  for (const block of given.blocks) {
    const button = element("button", { type: "button" }, `go into block ${block}`);
    button.addEventListener("click", () => {
      byId("block").value = String(block);
      draw(true);
    });
    parts.push(button);
  }
  return parts;
}

function place() {
  group?.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}

function zoom(by, x = byId("drawing").clientWidth / 2, y = byId("drawing").clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.02, view.scale * by));
  const real = scale / view.scale;
  Object.assign(view, { x: x - (x - view.x) * real, y: y - (y - view.y) * real, scale });
  place();
}

/** The whole graph, unless its text would be too small to be read; then its beginning. */
function fit() {
  const { clientWidth, clientHeight } = byId("drawing");
  const whole = Math.min(clientWidth / (drawn.width + 40), clientHeight / (drawn.height + 20));
  view.scale = Math.min(1.2, Math.max(0.6, whole));
  view.x = (clientWidth - drawn.width * view.scale) / 2;
  view.y = 10;
  place();
}
