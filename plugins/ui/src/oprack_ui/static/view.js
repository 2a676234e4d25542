// What part of the drawing is seen: moved by one pointer, zoomed by two, by the wheel and by buttons.

import { byId } from "./dom.js";

const LEAST = 0.004;
const MOST = 4;
const READABLE = 0.6; // below this scale the text of boxes is too small
const view = { x: 0, y: 0, scale: 1 };
const SLIP = 5; // pixels that a pointer may move in a click
const pointers = new Map();
let way = 0; // that pointers have moved since the first went down

function place() {
  byId("world")?.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}

export function zoom(by, x = byId("drawing").clientWidth / 2, y = byId("drawing").clientHeight / 2) {
  const scale = Math.min(MOST, Math.max(LEAST, view.scale * by));
  const real = scale / view.scale;
  Object.assign(view, { x: x - (x - view.x) * real, y: y - (y - view.y) * real, scale });
  place();
}

function scaleOfAll({ width, height }) {
  const { clientWidth, clientHeight } = byId("drawing");
  return Math.min(clientWidth / width, clientHeight / height);
}

/** The whole drawing in the middle, as small as it gets. */
export function showAll(drawn) {
  const { clientWidth, clientHeight } = byId("drawing");
  view.scale = Math.min(1.2, Math.max(LEAST, scaleOfAll(drawn)));
  view.x = (clientWidth - drawn.width * view.scale) / 2;
  view.y = Math.max(0, (clientHeight - drawn.height * view.scale) / 2);
  place();
}

/** All of a small drawing; of a large one its beginning, in letters that can be read. */
export function showStart(drawn) {
  if (!drawn.boxes.length || scaleOfAll(drawn) >= READABLE) {
    showAll(drawn);
    return;
  }
  const { clientWidth } = byId("drawing");
  view.scale = clientWidth < 600 ? 0.8 : 1;
  const start = drawn.boxes[drawn.start];
  view.x = clientWidth / 2 - (start.x + start.width / 2) * view.scale;
  view.y = 12 - start.y * view.scale;
  place();
}

/** Moves the view as little as brings a box into it, in letters that can be read. */
export function showBox(box) {
  const { clientWidth, clientHeight } = byId("drawing");
  if (view.scale < READABLE) {
    view.scale = 1;
    view.x = clientWidth / 2 - (box.x + box.width / 2);
    view.y = clientHeight / 2 - (box.y + box.height / 2);
  }
  view.x += inside(view.x + box.x * view.scale, box.width * view.scale, clientWidth);
  view.y += inside(view.y + box.y * view.scale, box.height * view.scale, clientHeight);
  place();
}

/** How far to move a span so that it is inside 0 .. room, with a margin; in the middle where it was far away. */
function inside(start, length, room) {
  const margin = Math.min(40, Math.max(0, (room - length) / 2));
  if (start >= margin && start + length <= room - margin) return 0;
  if (start + length < -room || start > 2 * room) return (room - length) / 2 - start;
  return start < margin ? margin - start : room - margin - length - start;
}

export function prepareView(drawing) {
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
  }, { passive: false });
  drawing.addEventListener("pointerdown", (event) => {
    if (!pointers.size) way = 0;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  drawing.addEventListener("click", (event) => way > SLIP && event.stopPropagation(), { capture: true });
  for (const name of ["pointerup", "pointercancel"]) {
    window.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
  window.addEventListener("pointermove", move);
}

function move(event) {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const now = [event.clientX, event.clientY];
  const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
  pointers.set(event.pointerId, now);
  if (other) {
    const { left, top } = byId("drawing").getBoundingClientRect();
    const apart = (at) => Math.max(1, Math.hypot(at[0] - other[0], at[1] - other[1]));
    zoom(apart(now) / apart(before), (now[0] + other[0]) / 2 - left, (now[1] + other[1]) / 2 - top);
  }
  way += Math.hypot(now[0] - before[0], now[1] - before[1]);
  const share = other ? 0.5 : 1;
  view.x += (now[0] - before[0]) * share;
  view.y += (now[1] - before[1]) * share;
  place();
}
