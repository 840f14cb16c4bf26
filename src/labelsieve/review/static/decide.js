// Deciding, undoing, redoing. A step is what one key press did, to one row or to many; undoing writes new decisions that
// restore what was there before, so the log only ever grows.

import * as api from "./api.js";
import { announce } from "./dom.js";
import { whole } from "./list.js";
import { newKey } from "./outbox.js";
import { meant, on, rowsOf, store, tell } from "./store.js";

const DONE = { accept: "accepted", keep: "kept", relabel: "relabelled", drop: "dropped", unsure: "not sure", clear: "open again" };
const KEPT = 5000; // decisions whose undoing outlives a reload; in memory there is no limit

let outbox = null;
let undoable = [];
let redoable = [];
const unsaved = new Map(); // key -> what it was written for, however many steps ago
let loading = false; // a selection; what was decided meanwhile would be overtaken by it

export function begin(box) {
  outbox = box;
  for (const [name, stack] of [["undo", undoable], ["redo", redoable]]) {
    try {
      const found = JSON.parse(localStorage.getItem(`labelsieve:${store.run}:${name}`) ?? "[]");
      if (Array.isArray(found)) stack.push(...found);
      for (const item of stack.flat()) unsaved.set(item.key, item);
    } catch { /* nothing was kept */ }
  }
}

// Soon, not at once: a key held down must not wait for the browser's storage.
let keeping = 0;
function remember() {
  clearTimeout(keeping);
  keeping = setTimeout(keepSteps, 300);
}

export function keepSteps() {
  try {
    localStorage.setItem(`labelsieve:${store.run}:undo`, JSON.stringify(latest(undoable)));
    localStorage.setItem(`labelsieve:${store.run}:redo`, JSON.stringify(latest(redoable)));
  } catch { /* the browser keeps no more; undoing works until the page is closed */ }
}

function latest(stack) {
  let first = stack.length;
  for (let items = 0; first > 0 && items + stack[first - 1].length <= KEPT; first--) items += stack[first - 1].length;
  return stack.slice(first);
}

// What a row comes to under an action: the label it would get.
export function outcome(row, action, label = null) {
  if (action === "accept") return store.classes[row.suggested];
  if (action === "keep") return store.classes[row.given];
  return action === "relabel" ? label : null;
}

export function decide(action, label = null) {
  if (busy()) return null;
  const places = meant();
  if (places.length === 1 && !store.rows.has(places[0])) { // nobody can have seen which label that would be
    announce("the list is still loading");
    return null;
  }
  if (places.every((place) => store.rows.has(place))) return decideAt(places, action, label);
  // A selection may reach beyond the pages that were shown: all of it is meant, or nothing.
  loading = true;
  busy();
  return whole(places).then((all) => all && decideAt(places, action, label)).catch((error) => tell("failed", error))
    .finally(() => { loading = false; });
}

function busy() {
  if (loading) announce("loading the selection");
  return loading;
}

const item = (row, action, label = null) => ({
  id: row.id,
  before: { action: row.state === "open" ? "clear" : row.state, label: row.label },
  after: { action, label: outcome(row, action, label) },
  given: store.classes[row.given],
  seq: row.seq,
  at: Date.now(),
});

function take(step) {
  undoable.push(step);
  redoable = [];
  write(step, "after");
  remember();
}

// Of two pictures that are the same, one stays; the other need not be in the list.
export function keepOne(kept, dropped) {
  if (busy()) return;
  take([...(kept ? [item(kept, "keep")] : []), item(dropped, "drop")]);
  announce(kept ? "one kept, its copy dropped" : "dropped");
}

function decideAt(places, action, label) {
  const rows = places.map((place) => store.rows.get(place)).filter((row) => row && !(action === "clear" && row.state === "open"));
  if (!rows.length) return;
  take(rows.map((row) => item(row, action, label)));
  const what = action === "relabel" ? `relabelled ${label}` : DONE[action];
  announce(rows.length === 1 ? `${what}` : `${rows.length} labels: ${what}`);
  tell("decided", places);
}

export const undo = () => back(undoable, redoable, "before", "undone");
export const redo = () => back(redoable, undoable, "after", "redone");
export const canUndo = () => undoable.length;
export const canRedo = () => redoable.length;

function back(from, to, which, words) {
  if (busy()) return;
  const step = from.pop();
  if (!step) {
    announce(`nothing to be ${words}`);
    return;
  }
  to.push(step);
  write(step, which);
  remember();
  announce(`${step.length === 1 ? "1 decision" : `${step.length} decisions`} ${words}`);
  tell("stepped", step);
}

function write(step, which) {
  const entries = step.map((item) => {
    const { action, label } = item[which];
    // What this step itself last wrote, or saw: what others decided since then is not swept away by undoing.
    const entry = { key: newKey(), id: item.id, action, label: action === "relabel" ? label : null, who: store.who, replaces: item.seq };
    for (const row of rowsOf(item.id)) assume(row, entry);
    item.key = entry.key;
    unsaved.set(item.key, item);
    return entry;
  });
  outbox.add(entries);
  tell("rows");
}

// A row as it will be once the server has the entry.
function assume(row, { action, label, who }) {
  Object.assign(row, { state: action === "clear" ? "open" : action, label: outcome(row, action, label), who, waiting: true, conflict: false });
}

// What is not saved yet stays decided in a list that is fresh from the server.
on("fetched", (rows) => {
  const last = new Map(outbox.waiting.map((entry) => [entry.id, entry]));
  for (const row of rows) if (last.has(row.id)) assume(row, last.get(row.id));
});

// The server has them on its disk.
export function saved(found) {
  for (const { key, seq } of found) {
    if (unsaved.get(key)?.key === key) unsaved.get(key).seq = seq; // else it was undone or redone since
    unsaved.delete(key);
  }
  for (const { id, seq } of found) {
    if (outbox.has(id)) continue;
    for (const row of rowsOf(id)) Object.assign(row, { waiting: false, seq: Math.max(row.seq ?? 0, seq) });
  }
  remember();
  tell("rows");
}

// The server will never take it: the page shows what stands there, and there is nothing to undo.
export async function takeBack({ key, id }) {
  const without = (stack) => stack.map((step) => step.filter((item) => item.key !== key)).filter((step) => step.length);
  undoable = without(undoable);
  redoable = without(redoable);
  unsaved.delete(key);
  remember();
  const found = await api.row(id).catch(() => null);
  if (!found) store.events = 0; // nothing is known of it now; the next look tells what stands
  const { state, label, who, seq, conflict, standing } = found ?? { state: "open", label: null, who: null, seq: null, conflict: false };
  for (const row of rowsOf(id)) {
    if (outbox.has(id) || (found && (row.seq ?? 0) > (seq ?? 0))) continue; // decided anew meanwhile
    Object.assign(row, { state, label, who, seq, conflict, standing, waiting: false });
  }
  tell("outbox");
  tell("rows");
}

// Labels that one has decided a minute, over the last five minutes at most: by what stands, so that neither undoing nor changing
// one's mind makes it faster.
export function rate() {
  const since = Date.now() - 300000;
  const seen = new Set();
  let decided = 0;
  let first = Date.now();
  for (let i = undoable.length - 1; i >= 0 && undoable[i][0].at >= since; i--) {
    for (const { id, after, at } of undoable[i]) {
      if (!seen.has(id) && after.action !== "clear") {
        decided++;
        first = at;
      }
      seen.add(id);
    }
  }
  return decided < 2 ? null : (60000 * decided) / Math.max(Date.now() - first, 10000);
}
