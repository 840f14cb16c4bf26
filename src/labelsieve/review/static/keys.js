// The keys, and the table of them that `?` shows. What a key does stands once, here.

import { choose } from "./chooser.js";
import { decide, redo, undo } from "./decide.js";
import { $, h, rest } from "./dom.js";
import { unfold } from "./filters.js";
import { go, renew, selectPage, toggle, toNextOpen } from "./list.js";
import { open as openMap } from "./map.js";
import { current, store, tell } from "./store.js";

const page = (step) => go(store.mode === "single" ? store.focus + 10 * step : (Math.floor(store.focus / store.perPage) + step) * store.perPage);
const line = () => (store.mode === "single" ? 1 : store.columns);

export function chooseClass() {
  if (store.total) choose((name) => decide("relabel", name));
}

export function switchMode() {
  store.mode = store.mode === "grid" ? "single" : "grid";
  tell("mode");
}

function toText() {
  unfold(true);
  $("text").focus();
}

function resize(step) {
  store.size = Math.max(0, Math.min(store.size + step, 3));
  tell("size");
}

function nth(digit) {
  const found = current()?.likeliest[digit - 1];
  if (found) decide("relabel", store.classes[found[0]]);
}

// [group, keys as shown, words, keys as the browser names them, what to do]
const TABLE = [
  ["Decide", "a or Enter", "accept the suggestion", ["a", "Enter"], () => decide("accept")],
  ["Decide", "k", "keep the given label", ["k"], () => decide("keep")],
  ["Decide", "1 … 9", "relabel: the likeliest classes", [], null],
  ["Decide", "c", "choose another class: type to find", ["c"], chooseClass],
  ["Decide", "d", "drop the sample", ["d", "Delete"], () => decide("drop")],
  ["Decide", "u", "not sure", ["u"], () => decide("unsure")],
  ["Decide", "Backspace", "take the decision back", ["Backspace"], () => decide("clear")],
  ["Decide", "z", "undo, without limit", ["z"], undo],
  ["Decide", "y or Shift z", "redo", ["y", "Z"], redo],
  ["Move", "← ↑ ↓ →", "previous, next", [], null],
  ["Move", "PgUp PgDn", "a page back, forward", [], null],
  ["Move", "Home End", "first, last", [], null],
  ["Move", "o", "next open label", ["o"], toNextOpen],
  ["Move", "g", "grid or single view", ["g"], switchMode],
  ["Select", "Shift ← ↑ ↓ →", "select several, 5,000 at most; keys then act on all of them", [], null],
  ["Select", "Space", "select or not, one by one", [" "], () => store.total && toggle(store.focus)],
  ["Select", "s", "select the page", ["s"], selectPage],
  ["Select", "Esc", "select nothing", ["Escape"], () => go(store.focus)],
  ["Page", "/", "find by id, path or class", ["/"], toText],
  ["Page", "m", "the map of all samples: draw around some to list them", ["m"], openMap],
  ["Page", "r", "a fresh list", ["r"], () => renew().catch((error) => tell("failed", error))],
  ["Page", "+ −", "larger or smaller cards", [], null],
  ["Page", "t", "light or dark", ["t"], () => tell("theme")],
  ["Page", "?", "these keys", ["?"], help],
];
const ACTS = new Map(TABLE.flatMap(([, , , keys, act]) => keys.map((key) => [key, act])));
const MOVES = {
  ArrowRight: () => 1, ArrowLeft: () => -1, ArrowDown: line, ArrowUp: () => -line(),
  Home: () => -store.total, End: () => store.total,
};

export function help() {
  const groups = [...new Set(TABLE.map(([group]) => group))];
  const dialog = $("keys");
  dialog.replaceChildren(h("h2", {}, "Keys"), h("div", { class: "groups" }, groups.map((group) =>
    h("section", {}, h("h3", {}, group), h("dl", {}, TABLE.filter(([one]) => one === group).flatMap(([, keys, words]) =>
      [h("dt", {}, keys.split(" ").map((key) => (key === "or" || key === "…" ? ` ${key} ` : h("kbd", {}, key)))), h("dd", {}, words)]))))),
  h("button", { onclick: () => dialog.close(), autofocus: true }, "Close (Esc)"));
  dialog.showModal();
  dialog.scrollTop = 0; // the button that closes it has the focus, and stands below the keys
}

function pressed(event) {
  if (document.querySelector("dialog[open]") || event.altKey || event.isComposing) return;
  const field = event.target.closest?.("input, select, textarea");
  if (field) {
    if (event.key === "Escape" || (event.key === "Enter" && field.id === "text")) { field.blur(); rest(); }
    return;
  }
  if (act(event)) event.preventDefault();
}

function act(event) {
  const { key } = event;
  if (event.ctrlKey || event.metaKey) {
    const chord = { z: event.shiftKey ? redo : undo, y: redo, a: selectPage }[key.toLowerCase()];
    if (!chord) return false;
    chord();
    return true;
  }
  // Enter and Space on a button press the button.
  if ((key === "Enter" || key === " ") && event.target.closest?.("button, a")) return false;
  if (key in MOVES) go(store.focus + MOVES[key](), { extend: event.shiftKey });
  else if (key === "PageDown") page(1);
  else if (key === "PageUp") page(-1);
  else if (key === "n" && !event.shiftKey) page(1);
  else if (key === "p" && !event.shiftKey) page(-1);
  else if (/^[1-9]$/.test(key)) nth(Number(key));
  else if (key === "+" || key === "=") resize(1);
  else if (key === "-") resize(-1);
  else if (ACTS.get(key)) ACTS.get(key)();
  else if (ACTS.get(key.toLowerCase()) && key.length === 1 && !event.shiftKey) ACTS.get(key.toLowerCase())();
  else return false;
  return true;
}

export function listen() {
  document.addEventListener("keydown", pressed);
  $("before").addEventListener("click", () => page(-1));
  $("after").addEventListener("click", () => page(1));
  $("help").addEventListener("click", help);
}

// The buttons at the bottom do what the keys do.
export function toolbar() {
  const button = (words, key, act, kind = "", id = null) =>
    h("button", { class: kind, id, onclick: () => { act(); rest(); } }, h("span", {}, words), h("kbd", { "aria-hidden": "true" }, key));
  document.querySelector(".actions").replaceChildren(
    button("Accept", "a", () => decide("accept"), "accept"),
    button("Keep", "k", () => decide("keep"), "keep"),
    h("button", { class: "relabel", onclick: chooseClass }, h("span", {}, "Choose"), h("kbd", { "aria-hidden": "true" }, "c")),
    button("Drop", "d", () => decide("drop"), "drop"),
    button("Not sure", "u", () => decide("unsure"), "unsure"),
    h("span", { class: "space" }),
    button("Undo", "z", undo, "plain", "do-undo"),
    button("Redo", "y", redo, "plain", "do-redo"),
    button("Grid / single", "g", switchMode, "plain", "do-mode"));
}
