// The filters above the list, and how they are remembered while the tab is open.

import { $, apart, h, number, say } from "./dom.js";
import { renew } from "./list.js";
import { open as openMap } from "./map.js";
import { on, pageOf, store, tell } from "./store.js";

const NAMES = { open: "open", accept: "accepted", keep: "kept", relabel: "relabelled", drop: "dropped", unsure: "not sure",
  conflict: "in conflict", decided: "decided", any: "any" };
const EMPTY = { given: "", suggested: "", state: "open", text: "", everything: false, own: "", area: "" };
let typing = 0;

export function build(facts) {
  $("state").replaceChildren(...facts.states.map((name) => h("option", { value: name }, NAMES[name] ?? name)));
  const odd = facts.own.reduce((sum, [, count]) => sum + count, 0);
  $("kinds").hidden = !odd;
  $("own").replaceChildren(h("option", { value: "" }, "labels"), h("option", { value: "odd" }, `odd samples (${number(odd)})`),
    ...facts.own.map(([kind, count]) => h("option", { value: kind }, `${kind} (${number(count)})`)));
  $("to-map").hidden = !facts.map;
  $("classes").replaceChildren(...store.classes.map((name) => h("option", { value: name })));
  $("pair").replaceChildren(h("option", { value: "" }, "any pair"), ...facts.pairs.map(([given, suggested, count]) =>
    h("option", { value: `${given} ${suggested}` }, `${apart(store.classes[given])} → ${apart(store.classes[suggested])} (${number(count)})`)));
  try {
    const kept = JSON.parse(sessionStorage.getItem(`labelsieve:${store.run}:filter`) ?? "{}");
    for (const name of Object.keys(EMPTY)) if (typeof kept[name] === typeof EMPTY[name]) store.filter[name] = kept[name];
  } catch { /* nothing was kept */ }
  for (const name of ["given", "suggested"]) if (!store.classes.includes(store.filter[name])) store.filter[name] = "";
  if (![...$("own").options].some((one) => one.value === store.filter.own)) store.filter.own = "";
  if (!facts.map) store.filter.area = "";
  show();
  listen();
}

function listen() {
  $("state").addEventListener("change", () => change({ state: $("state").value }));
  $("own").addEventListener("change", () => change({ own: $("own").value }));
  $("area").addEventListener("click", () => change({ ...EMPTY }));
  $("to-map").addEventListener("click", openMap);
  $("everything").addEventListener("change", () => change({ everything: $("everything").checked }));
  $("pair").addEventListener("change", () => {
    const [given, suggested] = $("pair").value.split(" ").map((k) => store.classes[k] ?? "");
    change({ given, suggested: suggested ?? "" });
  });
  for (const name of ["given", "suggested"]) {
    $(name).addEventListener("input", () => {
      const value = $(name).value;
      const known = !value || store.classes.includes(value);
      $(name).setAttribute("aria-invalid", String(!known));
      if (known) change({ [name]: value });
    });
  }
  $("text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ text: $("text").value }), 200);
  });
  $("clear").addEventListener("click", reset);
  $("more").addEventListener("click", () => unfold(!document.body.classList.contains("filtering")));
}

// On a narrow page the filters are folded away.
export function unfold(open) {
  document.body.classList.toggle("filtering", open);
  $("more").setAttribute("aria-expanded", String(open));
}

export function reset() {
  change({ ...EMPTY });
}

async function change(facts) {
  Object.assign(store.filter, facts);
  try {
    sessionStorage.setItem(`labelsieve:${store.run}:filter`, JSON.stringify(store.filter));
  } catch { /* it lasts as long as the page */ }
  show();
  await renew().catch((error) => tell("failed", error));
}

function show() {
  const { given, suggested, state, text, everything, own, area } = store.filter;
  $("area").hidden = !area;
  for (const [name, value] of Object.entries({ given, suggested, state, text, own })) if ($(name).value !== value) $(name).value = value;
  $("everything").checked = everything;
  const pair = `${store.classes.indexOf(given)} ${store.classes.indexOf(suggested)}`;
  $("pair").value = [...$("pair").options].some((one) => one.value === pair) ? pair : "";
  $("clear").hidden = Object.entries(EMPTY).every(([name, value]) => store.filter[name] === value);
}

function count() {
  if (!store.known) return;
  const chosen = store.selected.size ? `${number(store.selected.size)} selected of ` : "";
  say($("total"), `${chosen}${number(store.total)} ${store.total === 1 ? "label" : "labels"}`);
  const pages = Math.max(Math.ceil(store.total / store.perPage), 1);
  say($("page"), store.mode === "single" ? `${number(Math.min(store.focus + 1, store.total))} / ${number(store.total)}`
    : `${number(pageOf(store.focus) + 1)} / ${number(pages)}`);
}

on("rows list mode", count);
on("reset", reset);
on("area", (area) => change({ ...EMPTY, area, state: "any", everything: true }));
on("look", (id) => change({ ...EMPTY, text: id, state: "any", everything: true }));
