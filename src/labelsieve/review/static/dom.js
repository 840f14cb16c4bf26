// Elements from plain words. Texts go in as text nodes only, so a name that holds HTML is shown and never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export function h(tag, facts = {}, ...children) {
  return filled(document.createElement(tag), facts, children);
}

export function svg(tag, facts = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), facts, children);
}

function filled(element, facts, children) {
  for (const [name, value] of Object.entries(facts)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Change only what differs: the browser then lays out only what changed.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function set(element, name, value) {
  if (value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

// Where keys go while no button or field has them: the list, or what stands in its place.
export function rest() {
  $(document.body.dataset.mode === "single" ? "detail" : "list").focus({ preventScroll: true });
}

let clearing = 0;
let before = "";
// What comes `after` something is said with it: a live region tells only its latest words.
export function announce(text, { after = false } = {}) {
  const live = $("live");
  live.textContent = after && before ? `${before}; ${text}` : text;
  before = after ? "" : text;
  clearTimeout(clearing);
  clearing = setTimeout(() => { live.textContent = before = ""; }, 4000);
}

// A name among other words, where no element can hold it apart: one written from right to left would turn them round.
export const apart = (name) => `\u2068${name}\u2069`;

export const number = (value) => Math.round(value).toLocaleString("en-US");

// A score is no probability, so it is never shown in per cent.
export const points = (score) => (score < 0.0005 ? "<0.001" : score.toFixed(3));

// No chance is 0: what is sent is rounded to 0.01 %.
export function percent(share) {
  if (share < 0.001) return "<0.1 %";
  return `${(100 * share).toFixed(share < 0.1 || share > 0.995 ? 1 : 0)} %`;
}
