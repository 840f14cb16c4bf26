// The page's beginning: what the run is, then the list, then a look every second at what others decided.

import * as api from "./api.js";
import { begin, keepSteps, saved, takeBack } from "./decide.js";
import * as detail from "./detail.js";
import { $, announce, h, rest, say } from "./dom.js";
import * as filters from "./filters.js";
import { draw, measure } from "./grid.js";
import { listen, toolbar } from "./keys.js";
import { advance, go, renew, show } from "./list.js";
import { Outbox } from "./outbox.js";
import * as status from "./status.js";
import { meant, on, rowsOf, store, tell } from "./store.js";

const POLL = 1000;
const SOON = 300; // while pictures are awaited
const HIDDEN = 10000; // between looks while nobody sees the page
let outbox = null;
let timer = 0;
let latest = { events: 0, mark: "" }; // decisions that were heard of, which the progress counts, and what marks their log

// The token has become a cookie; it should not stay in the address bar, in bookmarks or in the history.
if (location.search) history.replaceState(null, "", location.pathname);

function kept(name, fallback) {
  try {
    return localStorage.getItem(`labelsieve:${name}`) ?? fallback;
  } catch {
    return fallback;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`labelsieve:${name}`, value);
  } catch { /* it lasts as long as the page */ }
}

async function start() {
  let facts;
  try {
    facts = await api.start();
  } catch (error) {
    $("banner").hidden = false;
    $("banner").textContent = error.kind === "gone" ? "The server does not answer; trying again." : `${error.message}.`;
    if (error.kind === "gone") setTimeout(start, 1500);
    return;
  }
  Object.assign(store, { classes: facts.classes, pictures: facts.pictures, run: facts.folder, map: facts.map,
    meanings: Object.fromEntries(facts.own.map(([kind, , meaning]) => [kind, meaning])) });
  document.title = `${facts.run}: labelsieve review`;
  $("run").textContent = facts.run;
  $("run").title = facts.folder;
  document.body.classList.toggle("vectors", !facts.pictures);
  naming(facts.who);
  theme(kept("theme", ""));
  store.size = Number(kept("size", "1")) || 1;
  outbox = new Outbox(facts.folder);
  begin(outbox);
  toolbar();
  listen();
  filters.build(facts);
  latest = { events: facts.events, mark: facts.mark };
  store.events = facts.events;
  status.progress(facts.progress);
  pictures(facts.shown);
  detail.looks();
  measure();
  await renew().catch((error) => tell("failed", error));
  performance.mark("list"); // the first labels stand on the page
  rest();
  outbox.flush();
  status.saving(outbox);
  timer = setTimeout(poll, store.ready ? POLL : SOON);
}

// Pictures are asked for once the server has opened the data: a browser has few connections, and decisions need one.
function pictures({ ready, remark }) {
  if (remark && store.remark !== remark) {
    store.remark = remark;
    announce(`no pictures: ${remark}`);
  }
  if (store.ready !== ready || remark) {
    store.ready = ready;
    tell("rows");
  }
}

async function poll() {
  clearTimeout(timer);
  const since = store.events;
  try {
    const found = await api.changes(since, latest.events, latest.mark);
    const away = !store.online;
    Object.assign(store, { online: true, denied: false });
    if (found.restart) {
      location.reload();
      return;
    }
    if (away) back();
    pictures(found.shown);
    const heard = found.changes.filter(apply).length;
    if (found.progress && found.events >= latest.events) { // else a later look came first
      latest = { events: found.events, mark: found.mark };
      status.progress(found.progress);
    }
    // What nobody could hear yet is told again; so is all since then, where rows came meanwhile that know less.
    if (heard === found.changes.length && store.events === since) store.events = found.events;
    if (found.changes.length) tell("rows");
  } catch (error) {
    const was = store.online;
    Object.assign(store, { online: error.kind !== "gone", denied: error.kind === "denied" });
    if (was && !store.online) announce("the server does not answer; your decisions are kept in this browser");
  }
  status.saving(outbox);
  timer = setTimeout(poll, document.hidden ? HIDDEN : store.pictures && !store.ready && !store.remark ? SOON : POLL);
}

function back() {
  announce("the server is back");
  outbox.wait = 0;
  outbox.flush();
  show(); // what was asked for in vain
}

// False where nobody may hear of it yet: ours is on its way, and this may already say what came after it.
function apply({ id, ...standing }) {
  if (outbox.has(id)) return false;
  for (const row of rowsOf(id)) {
    // An answer that was made before ours was saved and came after it: the row knows better.
    if (standing.seq >= (row.seq ?? 0)) Object.assign(row, standing, { waiting: false });
  }
  return true;
}

function naming(given) {
  const stored = kept("who", "").split("\n");
  const own = stored[1] === given && stored[0] ? stored[0] : given; // another --reviewer than last time wins
  name(own, given);
  $("who").addEventListener("click", () => {
    const dialog = $("naming");
    const input = h("input", { type: "text", maxlength: "80", value: store.who, "aria-label": "Your name", autocomplete: "name" });
    const note = h("p", { role: "alert" });
    const done = () => {
      const who = input.value.trim();
      const wrong = unfit(who);
      say(note, wrong);
      input.setAttribute("aria-invalid", String(Boolean(wrong)));
      if (wrong) return;
      if (who) name(who, given);
      dialog.close();
      rest();
    };
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") done(); });
    dialog.replaceChildren(h("h2", {}, "Who decides?"), h("p", {}, "Your decisions are signed with this name."), input, note, h("button", { onclick: done }, "Save"));
    dialog.showModal();
    input.select();
  });
}

// Why the server would take no decision signed so, or "".
function unfit(who) {
  if (/^[=+\-@]./.test(who)) return "A name must not begin with =, +, - or @, as formulas do.";
  return /[\p{C}\p{Z}]/u.test(who.replaceAll(" ", "")) ? "The name has an invisible character; type it again." : "";
}

function name(who, given) {
  store.who = who;
  keep("who", `${who}\n${given}`);
  $("who").textContent = who;
  $("who").setAttribute("aria-label", `Deciding as ${who}; change`);
}

function theme(value) {
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
}

on("theme", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme(dark ? "light" : "dark");
  keep("theme", dark ? "light" : "dark");
});
$("theme").addEventListener("click", () => tell("theme"));

on("outbox", () => status.saving(outbox));
on("saved", (found) => saved(found));
on("decided", (places) => {
  store.refused = "";
  if (String(meant()) === String(places)) advance(); // else one went on while they were loading
});
on("stepped", (step) => {
  for (const [place, row] of store.rows) if (row.id === step[0].id) go(place);
});
on("refused", ({ entry, words }) => {
  store.refused = `The server did not take a decision on ${entry.id}: ${words}.`;
  tell("failed", null);
  takeBack(entry);
});
on("failed", (error) => {
  if (error?.kind === "gone") store.online = false;
  else if (error) store.refused = `${error.message}.`;
  if (outbox) status.saving(outbox);
});
on("mode size", () => {
  keep("size", String(store.size));
  refit();
});
on("mode", rest);

function refit() {
  const before = store.perPage;
  measure();
  if (before !== store.perPage) show();
  draw();
}

let fitting = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(fitting);
  fitting = requestAnimationFrame(() => { if (store.total) refit(); });
}).observe($("list"));
document.addEventListener("visibilitychange", () => { if (!document.hidden && outbox) poll(); });
addEventListener("pagehide", keepSteps);
setInterval(() => { if (store.progress) status.draw(); }, 5000);

start();
