// The graph of a model: boxes and lines as the server placed them, to move through by pointer, touch and keys.

import { ask, byId, element } from "./dom.js";
import { prepareFinder } from "./find.js";
import { tell } from "./details.js";
import { prepareView, showAll, showBox, showStart, zoom } from "./view.js";

const COLORS = 8; // --pack-0 to --pack-7 of the style sheet
const SVG = "http://www.w3.org/2000/svg";
const opened = new Set();
let drawn;
let shapes = []; // the elements of drawn.boxes
let packs = []; // of its ops, in the order of their colours
let chosen = -1;
let latest = 0;

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function prepareGraph() {
  const again = () => {
    opened.clear();
    draw();
  };
  byId("stage").addEventListener("change", () => {
    byId("block").value = "0";
    again();
  });
  byId("block").addEventListener("change", () => draw());
  byId("outside").addEventListener("click", () => goInto(drawn.blocks[Number(byId("block").value)].inside));
  byId("fold").addEventListener("change", again);
  byId("larger").addEventListener("click", () => zoom(1.25));
  byId("smaller").addEventListener("click", () => zoom(0.8));
  byId("start").addEventListener("click", () => showStart(drawn));
  byId("fit").addEventListener("click", () => showAll(drawn));
  prepareView(byId("drawing"));
  prepareFinder(showPlace);
  byId("drawing").addEventListener("keydown", onKey);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing && !byId("graph").hidden) {
      event.preventDefault();
      byId("find").focus();
    }
  });
}

/** Draw what the controls say; then show its beginning, or the box that `find` gives. */
export async function draw(find = () => -1) {
  const turn = (latest += 1);
  const query = new URLSearchParams({
    stage: byId("stage").value,
    block: byId("block").value || "0",
    open: [...opened].join(","),
    fold: byId("fold").checked ? "1" : "0",
  });
  const answer = await ask(`api/model/graph?${query}`);
  if (turn !== latest) return; // a later choice has been answered
  drawn = answer;
  nameBlocks(query.get("block"));
  packs = [...new Set(drawn.boxes.flatMap((box) => box.packs))].sort();
  shapes = drawn.boxes.map((box, i) => boxShape(box, i));
  const head = { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" };
  const arrow = shape("marker", head, shape("path", { d: "M0 0L8 4L0 8z" }));
  byId("drawing").replaceChildren(
    shape("defs", {}, arrow), shape("g", { id: "world" }, ...drawn.lines.map(lineShape), ...shapes),
  );
  const wanted = find(drawn.boxes);
  showStart(drawn);
  if (wanted >= 0) choose(wanted);
  else mark(-1);
}

function nameBlocks(number) {
  const inside = drawn.blocks.map(({ op }, i) => element("option", { value: String(i) }, op ? `${i}, of ${op}` : String(i)));
  byId("block").replaceChildren(...inside);
  byId("block").value = number;
  byId("blocks").hidden = drawn.blocks.length === 1;
  byId("outside").hidden = drawn.blocks[Number(number)].inside < 0;
}

function lineShape({ path, names, ends }) {
  const attributes = { d: path, class: "edge", "marker-end": "url(#tip)", "data-ends": ends.join(" ") };
  return shape("path", attributes, shape("title", {}, names.join("\n")));
}

function boxShape(box, index) {
  const color = box.packs.length ? `pack-${packs.indexOf(box.packs[0]) % COLORS}` : "";
  const inner = box.details.some((detail) => detail.blocks?.length) ? "inner" : "";
  const size = { width: box.width, height: box.height, rx: box.kind === "variable" ? 14 : 5 };
  const words = box.lines.map((line) => line.filter(Boolean).join(" ")).join(", ");
  const made = shape(
    "g",
    {
      class: `box ${box.kind} ${color} ${inner}`, tabindex: -1, role: "button", transform: `translate(${box.x} ${box.y})`,
      "aria-label": box.kind === "chain" ? `chain of ${box.details.length} ops: ${words}` : words,
    },
    shape("rect", size),
  );
  const top = box.height / 2 - (box.lines.length - 1) * 8 + 4;
  made.append(...box.lines.map(([name, more], i) => {
    const text = shape("text", { x: box.width / 2, y: top + i * 16 }, name);
    if (more) text.append(shape("tspan", { class: "more" }, name ? ` ${more}` : more));
    return text;
  }));
  made.addEventListener("click", () => choose(index));
  made.addEventListener("dblclick", () => open(index));
  return made;
}

/** Marks a box and says all of it; -1 for none. */
function mark(index) {
  shapes.forEach((one, i) => {
    one.classList.toggle("chosen", i === index);
    one.setAttribute("tabindex", i === (index < 0 ? drawn.start : index) ? 0 : -1);
  });
  for (const line of byId("drawing").querySelectorAll(".edge")) {
    line.classList.toggle("chosen", line.dataset.ends.split(" ").includes(String(index)));
  }
  chosen = index;
  tell(drawn.boxes[index] ?? null, packs, actions);
}

function choose(index) {
  mark(index);
  shapes[index].focus({ preventScroll: true });
  showBox(drawn.boxes[index]);
}

/** Unfold a chain, or go into the block of an op. */
function open(index) {
  const box = drawn.boxes[index];
  const [block] = box.details.flatMap((detail) => detail.blocks ?? []);
  if (box.kind === "chain") actions.unfold(box);
  else if (block !== undefined) goInto(block);
}

function goInto(block) {
  byId("block").value = String(block);
  draw();
}

const stands = (number) => (box) => box.details.some((detail) => detail.number === number);

const actions = {
  unfold(box) {
    opened.add(box.key);
    draw((boxes) => boxes.findIndex(stands(box.details[0].number)));
  },
  fold(box) {
    opened.delete(box.key);
    draw((boxes) => boxes.findIndex(stands(box.details[0].number)));
  },
  goInto,
  find(name) {
    byId("find").value = name;
    byId("find").focus();
    byId("find").dispatchEvent(new Event("input"));
  },
};

async function showPlace({ block, number }) {
  if (byId("block").value !== String(block)) {
    byId("block").value = String(block);
    await draw((boxes) => boxes.findIndex(stands(number)));
    return;
  }
  const index = drawn.boxes.findIndex(stands(number));
  if (index >= 0) choose(index);
}

// Keys --------------------------------------------------------------------------------------------------------------
const center = (box) => box.x + box.width / 2;

/** The box that an arrow key leads to: along a line, or beside. */
function next(key) {
  const { boxes, lines } = drawn;
  const from = boxes[chosen];
  const near = (candidates) => candidates.sort((a, b) => Math.abs(center(boxes[a]) - center(from)) - Math.abs(center(boxes[b]) - center(from)))[0];
  if (key === "ArrowDown") return near(lines.filter(({ ends }) => ends[0] === chosen).map(({ ends }) => ends[1]));
  if (key === "ArrowUp") return near(lines.filter(({ ends }) => ends[1] === chosen).map(({ ends }) => ends[0]));
  const side = key === "ArrowRight" ? 1 : -1;
  const level = (box) => box.y < from.y + from.height && box.y + box.height > from.y;
  return near([...boxes.keys()].filter((i) => i !== chosen && level(boxes[i]) && (center(boxes[i]) - center(from)) * side > 0));
}

function onKey(event) {
  const { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || !shapes.length) return;
  const act = {
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => showAll(drawn),
    Home: () => choose(drawn.start),
    Enter: () => (chosen >= 0 ? enter() : choose(drawn.start)),
    Escape: () => mark(-1),
  }[key];
  if (act) act();
  else if (key.startsWith("Arrow")) {
    const to = chosen < 0 ? drawn.start : next(key);
    if (to !== undefined) choose(to);
  } else return;
  event.preventDefault();
}

function enter() {
  const focused = shapes.indexOf(document.activeElement);
  if (focused >= 0 && focused !== chosen) choose(focused);
  else open(chosen);
}
