// The list as the server cut it: pages of rows are asked for when they are shown, and the next one ahead of time.

import * as api from "./api.js";
import { announce } from "./dom.js";
import { pageOf, store, tell } from "./store.js";

const MOST = 500; // rows in one answer
const SELECTED = 5000; // at once, at most: as many as an undo after a reload can take back
const KEPT = 1500; // rows that are kept; those far from the focus go first
let asked = new Map(); // offset and count -> promise, so that nothing is asked twice
let era = 0; // answers to questions of an older list are thrown away

// A new list for the filter as it is now.
export async function renew(focus = 0) {
  era += 1;
  asked = new Map();
  Object.assign(store, { view: "", rows: new Map(), focus, anchor: focus, selected: new Set() });
  await fetchFrom(pageOf(focus) * store.perPage);
  tell("list");
  show();
}

async function fetchFrom(offset, count = store.perPage) {
  const mine = era;
  const found = await api.rows(store.filter, store.view, offset, Math.min(count, MOST));
  if (mine !== era) return;
  if (store.view && found.view !== store.view) { // of another log: places, selected ones too, mean other labels now
    await renew();
    return;
  }
  // An answer that was made before a look and came after it: the next look tells again what these rows missed.
  Object.assign(store, { view: found.view, total: found.total, known: true, events: Math.min(store.events, found.events) });
  tell("fetched", found.rows);
  // Rows that are here stay: they hold what was decided and is not saved yet, and hear of the rest.
  found.rows.forEach((row, i) => store.rows.has(offset + i) || store.rows.set(offset + i, row));
  if (store.focus >= store.total) store.focus = Math.max(store.total - 1, 0);
}

// True once all of these places, in rising order, are here; false where the list was renewed meanwhile.
export async function whole(places) {
  const mine = era;
  for (const place of places) {
    if (!store.rows.has(place)) await fetchFrom(place, Math.min(places.at(-1) + 1 - place, MOST));
    if (mine !== era || !store.rows.has(place)) return false;
  }
  return true;
}

function ensure(page) {
  const offset = page * store.perPage;
  if (page < 0 || (store.total && offset >= store.total)) return Promise.resolve();
  const end = Math.min(offset + store.perPage, store.total || offset + 1);
  let whole = true;
  for (let place = offset; place < end && whole; place++) whole = store.rows.has(place);
  if (whole) return Promise.resolve();
  const pages = asked; // of this list
  const part = `${offset} ${store.perPage}`;
  if (!pages.has(part)) pages.set(part, fetchFrom(offset).finally(() => pages.delete(part)));
  return pages.get(part);
}

// Show the page of the focus; ask for it if it is not here, and for the ones beside it.
export async function show() {
  tell("rows");
  const page = pageOf(store.focus);
  try {
    await ensure(page);
    tell("rows");
    ensure(page + 1).then(warm).catch(() => {});
    ensure(page - 1).catch(() => {});
    forget();
  } catch (error) {
    tell("failed", error);
  }
}

// Fetch the next page's pictures ahead of time; the browser keeps them.
function warm() {
  if (!store.pictures || !store.ready) return;
  const first = (pageOf(store.focus) + 1) * store.perPage;
  for (let place = first; place < first + Math.min(store.perPage, 80); place++) {
    const row = store.rows.get(place);
    if (row) new Image().src = api.picture(row.id);
  }
}

function forget() {
  if (store.rows.size <= KEPT) return;
  const near = [...store.rows.keys()].sort((a, b) => Math.abs(a - store.focus) - Math.abs(b - store.focus));
  for (const place of near.slice(KEPT)) if (!store.selected.has(place)) store.rows.delete(place);
}

export function go(place, { extend = false, keep = false } = {}) {
  let to = Math.max(0, Math.min(place, store.total - 1));
  if (extend) {
    to = Math.max(store.anchor - SELECTED + 1, Math.min(to, store.anchor + SELECTED - 1));
    store.selected = new Set();
    for (let one = Math.min(store.anchor, to); one <= Math.max(store.anchor, to); one++) store.selected.add(one);
  } else {
    store.anchor = to;
    if (!keep) store.selected = new Set();
  }
  store.focus = to;
  show();
}

export function toggle(place) {
  if (store.selected.has(place)) store.selected.delete(place);
  else store.selected.add(place);
  store.anchor = place;
  store.focus = place;
  show();
}

export function selectPage() {
  const first = pageOf(store.focus) * store.perPage;
  const places = [];
  for (let place = first; place < Math.min(first + store.perPage, store.total); place++) places.push(place);
  store.selected = new Set(places);
  announce(`${places.length} selected`);
  tell("rows");
}

export async function toNextOpen() {
  const [mine, from] = [era, store.focus];
  const decided = (place) => store.rows.has(place) && store.rows.get(place).state !== "open"; // the server may not know it yet
  const passed = new Set();
  let at = from;
  try {
    do {
      passed.add(at);
      while (decided(at + 1)) at += 1;
      ({ at } = await api.nextOpen(store.filter, store.view, at));
      if (mine !== era || from !== store.focus) return; // one went on meanwhile
    } while (at >= 0 && decided(at) && !passed.has(at));
    if (at < 0 || decided(at)) announce("no open label left in this list");
    else go(at);
  } catch (error) {
    tell("failed", error);
  }
}

// After a decision: on to the next one; in the single view to the next that is open.
export function advance() {
  const last = store.selected.size ? Math.max(...store.selected) : store.focus;
  const next = Math.min(last + 1, store.total - 1);
  if (store.mode === "single" && store.rows.get(next)?.state !== "open" && next > last) {
    let place = next;
    while (store.rows.has(place) && store.rows.get(place).state !== "open" && place < store.total - 1) place++;
    go(place);
  } else go(next);
}
