// The label in focus with all that is known of it: beside the grid, or large and alone.

import * as api from "./api.js";
import { $, announce, h, percent, points } from "./dom.js";
import { decide, keepOne } from "./decide.js";
import { SIGNS, WORDS, words } from "./grid.js";
import { sparkline } from "./sparkline.js";
import { current, on, store, tell } from "./store.js";

const known = new Map(); // id -> detail, of the rows last looked at
const KEPT = 200;
let shown = "";
let timer = 0;
let told = ""; // the id that was read out last

function bar(kind, name, share, words, shown = percent) {
  const fill = h("i");
  fill.style.width = `${Math.max(100 * share, 0.5)}%`;
  return h("div", { class: `chance ${kind}` }, h("span", { class: "what" }, words), h("b", {}, name), h("span", { class: "share" }, shown(share)),
    h("div", { class: "bar", "aria-hidden": "true" }, fill));
}

function picture(row) {
  if (!store.pictures) return null;
  if (!store.ready) return h("div", { class: "large none" }, store.remark ? `no picture: ${store.remark}` : "");
  const image = h("img", { src: api.picture(row.id, store.mode === "single" ? "large" : "small"), alt: words(row) });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth <= 48));
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "none" }, `no picture: ${row.id}`)));
  return h("div", { class: "large" }, image);
}

function classes(row) {
  return h("ol", { class: "likeliest", "aria-label": "Likeliest classes, keys 1 to 9" }, row.likeliest.map(([k, share], i) =>
    h("li", {}, h("button", { title: `Relabel (${i + 1})`, onclick: () => decide("relabel", store.classes[k]) },
      h("kbd", {}, String(i + 1)), h("span", {}, store.classes[k]), share === null ? null : h("small", {}, percent(share))))));
}

function near(title, rows) {
  return h("section", { class: "near" }, h("h3", {}, title), rows.length
    ? h("ul", {}, rows.map((row) => h("li", { title: row.id }, store.pictures && store.ready
      ? h("img", { src: api.picture(row.id), alt: `${store.classes[row.label]}, ${row.id}`, loading: "lazy" })
      : h("span", {}, row.id))))
    : h("p", { class: "muted" }, "none kept for this label"));
}

// Whatever they are labelled: mistakes come in groups. A press lists the sample, wherever it stands.
function alike(rows) {
  return h("section", { class: "near alike" }, h("h3", {}, store.pictures ? "Pictures like this one" : "Samples like this one"),
    h("ul", {}, rows.map((row) => h("li", { class: row.issue ? "issue" : null },
      h("button", { title: `${row.id}: list it`, onclick: () => tell("look", row.id) }, store.pictures && store.ready
        ? h("img", { src: api.picture(row.id), alt: row.id, loading: "lazy" }) : h("span", {}, row.id),
      h("small", {}, `${store.classes[row.label]}${row.issue ? " ?" : ""}`))))));
}

// The same picture twice: side by side, and a press keeps one of them.
function twice(row, other) {
  if (!other) return null;
  const tested = other.given === undefined;
  const shot = (one, words) => h("li", {}, store.pictures && store.ready ? h("img", { src: api.picture(one.id), alt: one.id }) : h("span", {}, one.id),
    h("small", {}, words));
  return h("section", { class: "near twice", role: "group", "aria-label": "The same picture again" },
    h("h3", {}, tested ? "The same, in the test set" : "The same, under another label"),
    h("ul", {}, shot(row, store.classes[row.given]), shot(other, tested ? "test set" : store.classes[other.given])),
    tested ? h("button", { onclick: () => keepOne(null, row) }, "Drop it here") : [
      h("button", { onclick: () => keepOne(row, other) }, `Keep ${store.classes[row.given]}`), " ",
      h("button", { onclick: () => keepOne(other, row) }, `Keep ${store.classes[other.given]}`)],
    h("p", { class: "id" }, other.id));
}

function decisions(row) {
  if (!row.decisions.length) return null;
  return h("section", { class: "past" }, h("h3", {}, "Decisions"), h("ul", {}, row.decisions.slice().reverse().map((entry) =>
    h("li", {}, h("b", {}, entry.who), ` ${WORDS[entry.action] ?? "taken back"}`, entry.label ? `: ${entry.label}` : "",
      h("time", { datetime: entry.when }, new Date(entry.when).toLocaleString())))));
}

function conflict(row) {
  if (!row.conflict || !row.standing?.length) return null;
  return h("section", { class: "conflict", role: "group", "aria-label": "Conflict" },
    h("h3", {}, "Reviewers disagree"), row.standing.map((entry) =>
      h("p", {}, h("b", {}, entry.who), ` says ${WORDS[entry.action]}${entry.label ? `: ${entry.label}` : ""} `,
        h("button", { onclick: () => decide(entry.action, entry.label) }, "Take this"))),
    h("p", { class: "muted" }, "Whatever you decide now settles it."));
}

function body(row, full) {
  const single = store.mode === "single";
  const facts = [
    h("h2", {}, h("span", { class: "given" }, store.classes[row.given]), " → ", h("span", { class: "suggested" }, store.classes[row.suggested])),
    h("p", { class: "state", "data-state": row.conflict ? "conflict" : row.state }, row.conflict ? "conflict" :
      `${SIGNS[row.state]} ${WORDS[row.state]}${row.state === "relabel" ? ` as ${row.label}` : ""}`, row.waiting ? h("em", {}, " saving") : null),
    conflict({ ...full, ...row }),
    row.own ? h("p", { class: "odd" }, h("b", {}, row.own), `: ${store.meanings[row.own] ?? ""}`) : null,
    full ? twice(row, full.copy) : null,
    bar("given", store.classes[row.given], row.score, "given label, its score (low is suspicious)", points),
    bar("suggested", store.classes[row.suggested], row.confidence, "suggested, its share"),
    h("p", { class: "reason" }, full?.reason ?? ""),
    classes(row),
    full ? near(`Nearest clean ${store.classes[row.given]}`, full.near_given) : null,
    full && row.given !== row.suggested ? near(`Nearest clean ${store.classes[row.suggested]}`, full.near_suggested) : null,
    full?.alike.length ? alike(full.alike) : null,
    full?.history.length > 1 ? h("section", { class: "moved" }, h("h3", {}, "How the networks judged the label during training, 0 to 1"), sparkline(full.history),
      h("p", { class: "ends" }, h("span", {}, `after epoch ${full.history[0][0]}: ${points(full.history[0][1])}`),
        h("span", {}, `after epoch ${full.history.at(-1)[0]}: ${points(full.history.at(-1)[1])}`))) : null,
    full ? decisions(full) : null,
    h("p", { class: "id" }, full?.path && full.path !== row.id ? `${row.id} · ${full.path}` : row.id),
  ];
  return single ? [picture(row), h("div", { class: "about" }, facts)] : [picture(row), facts];
}

export function draw() {
  const panel = $("detail");
  const row = current();
  if (!row) {
    panel.replaceChildren(store.total || !store.known ? h("p", { class: "muted" }, "loading") : empty());
    shown = "";
    return;
  }
  const full = known.get(row.id);
  const face = JSON.stringify([row, store.mode, store.ready, store.remark, full?.seq, Boolean(full)]);
  if (store.mode === "single" && told !== row.id) announce(words(row), { after: true });
  told = row.id;
  if (face !== shown) {
    shown = face;
    const scroll = panel.scrollTop;
    panel.replaceChildren(...body(row, full).flat().filter(Boolean));
    panel.scrollTop = scroll;
  }
  if (!full || (!row.waiting && (full.seq !== row.seq || full.conflict !== row.conflict))) {
    clearTimeout(timer);
    timer = setTimeout(() => load(row), full ? 50 : 60);
  }
}

async function load(row) {
  try {
    const full = await api.row(row.id);
    known.delete(row.id);
    known.set(row.id, full);
    if (known.size > KEPT) known.delete(known.keys().next().value);
    if (current()?.id === row.id) {
      shown = "";
      draw();
    }
  } catch { /* the next poll says that the server is gone */ }
}

function empty() {
  return h("div", { class: "done" }, h("h2", {}, "Nothing to show"), h("p", {}, store.filter.state === "open"
    ? "No open label matches these filters." : "No label matches these filters."),
  h("button", { onclick: () => tell("reset") }, "Clear the filters"));
}

export function looks() {
  document.body.dataset.mode = store.mode;
  shown = told = "";
  draw();
}

on("rows list", draw);
on("mode", looks);
