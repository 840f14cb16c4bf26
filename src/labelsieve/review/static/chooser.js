// Type to find a class: likeliest first while nothing is typed, then by how well the name fits.

import { $, h, rest } from "./dom.js";
import { current, store } from "./store.js";

const SHOWN = 60;

// Lower is better; null where the name does not fit: start, start of a word, anywhere, letters in order.
export function fit(name, typed) {
  const text = name.normalize("NFC").toLowerCase(); // accents may be letters of their own in names of files
  const wanted = typed.trim().normalize("NFC").toLowerCase();
  if (!wanted) return 0;
  const at = text.indexOf(wanted);
  if (text === wanted) return 0;
  if (at === 0) return 1;
  if (at > 0) return /[\s_\-/.,]/.test(text[at - 1]) ? 2 : 3;
  let place = -1;
  for (const letter of wanted) {
    place = text.indexOf(letter, place + 1);
    if (place < 0) return null;
  }
  return 4;
}

export function found(typed) {
  const likely = current()?.likeliest.map(([k]) => k) ?? [];
  const rank = new Map(likely.map((k, i) => [k, i]));
  return store.classes
    .map((name, k) => ({ name, k, fit: fit(name, typed), rank: rank.get(k) ?? likely.length }))
    .filter((one) => one.fit !== null)
    .sort((a, b) => a.fit - b.fit || a.rank - b.rank || a.name.length - b.name.length || a.k - b.k);
}

export function choose(then) {
  const dialog = $("chooser");
  let at = 0;
  let options = [];
  const list = h("ul", { role: "listbox", id: "choices", "aria-label": "Classes" });
  const input = h("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "choices", autocomplete: "off",
    "aria-label": "Type to find a class", placeholder: "type to find a class" });
  const more = h("p", { class: "muted" });

  function draw() {
    options = found(input.value);
    at = Math.max(0, Math.min(at, Math.min(options.length, SHOWN) - 1));
    list.replaceChildren(...options.slice(0, SHOWN).map((one, i) =>
      h("li", { role: "option", id: `choice-${i}`, "aria-selected": String(i === at), onclick: () => take(one) }, one.name)));
    more.textContent = options.length > SHOWN ? `and ${options.length - SHOWN} more: keep typing` : options.length ? "" : "no class has this name";
    input.setAttribute("aria-activedescendant", options.length ? `choice-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  function take(one) {
    dialog.close();
    rest();
    if (one) then(one.name);
  }

  input.addEventListener("input", () => { at = 0; draw(); });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) at += step;
    else if (event.key === "Enter" && !event.isComposing) take(options[at]);
    else return;
    event.preventDefault();
    if (dialog.open) draw();
  });
  dialog.replaceChildren(input, list, more);
  dialog.showModal();
  input.focus();
  draw();
}
