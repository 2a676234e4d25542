// Search in the graph: ops and variables of all blocks, as a list to choose from by pointer or keys.

import { ask, byId, element } from "./dom.js";

const PAUSE = 120; // milliseconds without a key before the server is asked
let places = [];
let current = -1;
let waiting;
let latest = 0;
let show;

/** chosen: is given the block and the number of the op that was chosen. */
export function prepareFinder(chosen) {
  show = chosen;
  const box = byId("find");
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, PAUSE);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Enter: event.shiftKey ? -1 : 1 }[event.key];
    if (step && places.length) {
      event.preventDefault();
      go((current + step + places.length) % places.length, event.key !== "Enter");
    } else if (event.key === "Escape") close();
  });
  box.addEventListener("focus", () => {
    if (places.length) byId("places").hidden = false;
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".finder")) close();
  });
}

function close() {
  byId("places").hidden = true;
}

async function look() {
  const turn = (latest += 1);
  const words = byId("find").value.trim();
  current = -1;
  if (!words) {
    places = [];
    close();
    return;
  }
  const found = await ask(`api/model/find?${new URLSearchParams({ stage: byId("stage").value, words })}`);
  if (turn !== latest) return;
  places = found.places;
  const text = found.count > places.length ? `${found.count} ops, the first ${places.length}:` : `${found.count} ops`;
  byId("places").replaceChildren(element("p", { className: "hint" }, text), ...places.map((place, i) => {
    const inner = place.block ? `block ${place.block}, ` : "";
    const row = element("button", { type: "button", role: "option" }, place.op, element("small", {}, inner + place.note));
    row.addEventListener("click", () => go(i, false));
    return row;
  }));
  byId("places").hidden = false;
}

/** Shows a place; the list stays while one looks along it. */
async function go(index, stay) {
  current = index;
  const rows = byId("places").querySelectorAll("button");
  rows.forEach((row, i) => {
    row.classList.toggle("chosen", i === index);
    row.setAttribute("aria-selected", i === index);
  });
  rows[index].scrollIntoView({ block: "nearest" });
  if (!stay && window.innerWidth < 700) close();
  await show(places[index]);
  if (!byId("places").hidden) byId("find").focus();
}
