// The grid: one card a row of the list. Cards are made once and filled anew, so turning a page costs little.

import * as api from "./api.js";
import { $, announce, h, points, rest, say, set } from "./dom.js";
import { go, toggle } from "./list.js";
import { on, pageOf, store, tell } from "./store.js";

export const WORDS = { open: "open", accept: "accepted", keep: "kept", relabel: "relabelled", drop: "dropped", unsure: "not sure" };
export const SIGNS = { open: "", accept: "✓", keep: "=", relabel: "✎", drop: "✕", unsure: "?" };
const WIDTHS = [104, 136, 184, 260];
const GAP = 8;
const TEXT = 48; // pixels below a card's picture

const cards = [];
let said = {}; // the card and the id that had the focus last

function make(number) {
  const parts = {
    picture: h("img", { alt: "", draggable: "false", decoding: "async" }),
    none: h("span", { class: "none" }),
    given: h("span", { class: "given" }),
    suggested: h("span", { class: "suggested" }),
    score: h("span", { class: "score" }),
    mark: h("span", { class: "mark" }),
    own: h("span", { class: "own" }),
    tick: h("span", { class: "tickmark", "aria-hidden": "true" }, "✓"),
  };
  parts.picture.addEventListener("error", () => { parts.picture.hidden = true; parts.none.hidden = false; say(parts.none, parts.root.title); });
  parts.root = h("div", { class: "card", role: "option", id: `card-${number}` },
    h("div", { class: "shot" }, parts.picture, parts.none, parts.tick, parts.own, parts.mark),
    h("div", { class: "names" }, parts.given, parts.score),
    h("div", { class: "names" }, h("span", { class: "arrow", "aria-hidden": "true" }, "→"), parts.suggested));
  parts.root.addEventListener("click", (event) => {
    const place = pageOf(store.focus) * store.perPage + number;
    if (event.shiftKey) go(place, { extend: true });
    else if (event.ctrlKey || event.metaKey || event.target === parts.tick) toggle(place);
    else go(place);
    rest();
  });
  parts.root.addEventListener("dblclick", () => { store.mode = "single"; tell("mode"); });
  return parts;
}

function fill(card, place) {
  const row = store.rows.get(place);
  const there = place < store.total;
  card.root.hidden = !there;
  if (!there) return;
  set(card.root, "aria-selected", store.selected.has(place));
  card.root.classList.toggle("focus", place === store.focus);
  card.root.classList.toggle("loading", !row);
  if (!row) {
    card.picture.removeAttribute("src");
    for (const part of [card.given, card.suggested, card.score, card.mark, card.own]) say(part, "");
    return;
  }
  say(card.given, store.classes[row.given]);
  say(card.suggested, store.classes[row.state === "relabel" ? store.classes.indexOf(row.label) : row.suggested] ?? row.label);
  say(card.score, points(row.score));
  say(card.own, row.own);
  say(card.mark, row.conflict ? "conflict" : row.state === "open" ? "" : `${SIGNS[row.state]} ${WORDS[row.state]}`);
  card.root.dataset.state = row.conflict ? "conflict" : row.state;
  card.root.classList.toggle("waiting", Boolean(row.waiting));
  set(card.root, "aria-label", words(row));
  set(card.root, "title", row.id);
  shot(card, row);
}

function shot(card, row) {
  const face = `${store.ready} ${store.remark ?? ""} ${row.id}`;
  if (card.face === face) return;
  card.face = face;
  const shown = store.pictures && store.ready;
  card.none.hidden = shown;
  card.picture.hidden = !shown;
  say(card.none, store.pictures && !store.remark ? "" : row.id);
  if (shown) card.picture.src = api.picture(row.id);
}

export function words(row) {
  const state = row.conflict ? "in conflict" : `${WORDS[row.state]}${row.state === "relabel" ? ` as ${row.label}` : ""}`;
  return `${row.id}: given ${store.classes[row.given]}, suggested ${store.classes[row.suggested]}, ` +
    `score ${points(row.score)} (low is suspicious), ${row.own ? `${row.own}, ` : ""}${state}${row.waiting ? ", not saved yet" : ""}`;
}

// How many cards fit; the first one on the page stays on the page.
export function measure() {
  const list = $("list");
  const width = list.clientWidth - 2 * GAP;
  const height = list.clientHeight - 2 * GAP;
  if (width <= 0) return;
  const narrow = width < 520;
  const wanted = narrow ? Math.min(WIDTHS[store.size], 120) : WIDTHS[store.size];
  const usual = Math.max(narrow ? 3 : 2, Math.floor((width + GAP) / (wanted + GAP)));
  // A column more or less may fill the height better; a list that scrolls is full anyway.
  const tries = narrow ? [usual] : [usual, usual + 1, usual + 2, usual - 1].filter((columns) => columns > 1);
  const fits = tries.map((columns) => {
    const side = (width - GAP * (columns - 1)) / columns + TEXT + GAP;
    const lines = Math.max(narrow ? 6 : 1, Math.floor((height + GAP) / side));
    return { columns, lines, empty: Math.max(height + GAP - lines * side, 0) / height + 0.08 * Math.abs(columns - usual) };
  });
  const { columns, lines } = fits.reduce((best, one) => (one.empty < best.empty ? one : best));
  store.columns = columns;
  store.perPage = Math.min(Math.max(store.columns * lines, 4), 500);
  list.style.setProperty("--columns", store.columns);
}

export function draw() {
  if (store.mode !== "grid") return;
  const list = $("list");
  while (cards.length < store.perPage) {
    const card = make(cards.length);
    cards.push(card);
    list.append(card.root);
  }
  const first = pageOf(store.focus) * store.perPage;
  cards.forEach((card, i) => {
    if (i < store.perPage) fill(card, first + i);
    else card.root.hidden = true;
  });
  const focused = cards[store.focus - first];
  const row = store.rows.get(store.focus);
  // A card that has the focus before and after a page is turned is the same element, so nobody is told that it changed.
  if (row && focused && said.card === focused && said.id !== row.id) announce(words(row), { after: true });
  if (row) said = { card: focused, id: row.id };
  set(list, "aria-activedescendant", store.total && focused ? focused.root.id : null);
  if (focused && list.scrollHeight > list.clientHeight) focused.root.scrollIntoView({ block: "nearest" });
  list.classList.toggle("empty", store.total === 0);
}

on("rows", draw);
