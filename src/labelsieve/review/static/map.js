// The map: each sample a dot, near those that look like it. Draw around some to list them, press one to list it alone.

import * as api from "./api.js";
import { $, announce, h, number, rest, say } from "./dom.js";
import { on, store, tell } from "./store.js";

const HUES = [210, 28, 150, 330, 52, 275, 185, 0]; // of a few classes; of many, each next one is far from the last
const REACH = 10; // pixels around the pointer in which a dot is meant
const SIDE = 64; // buckets a side, for finding the nearest dot
const CORNERS = 80;
const MOST_ZOOM = 60;
const MANY = 5000; // dots
const FAINT = ["#dcdcd8", "#3a424b"]; // of classes that are not asked for, on light and dark ground
const ISSUE = 1;
const ODD = 2;

let dots = null; // { count, rows, at, given, flags, order, starts }
let view = { zoom: 1, x: 0, y: 0 }; // the corner at the top left, in units of the map
let path = []; // of the pointer while it draws
let shown = { only: false, given: -1 };
let near = -1;
let timer = 0;
const known = new Map(); // row -> what is told of it

function read(buffer) {
  const count = new DataView(buffer).getUint32(0, true);
  const part = (from, type, length) => new type(buffer.slice(from, from + length * type.BYTES_PER_ELEMENT));
  const found = { count, rows: part(4, Uint32Array, count), at: Float32Array.from(part(4 + 4 * count, Uint16Array, 2 * count), (v) => v / 65535),
    given: part(4 + 8 * count, Uint16Array, count), flags: part(4 + 10 * count, Uint8Array, count) };
  return { ...found, ...buckets(found) };
}

const cell = (value) => Math.min(SIDE - 1, Math.max(0, Math.floor(value * SIDE)));

function buckets({ count, at }) {
  const starts = new Uint32Array(SIDE * SIDE + 1);
  const of = Uint32Array.from({ length: count }, (_, i) => cell(at[2 * i + 1]) * SIDE + cell(at[2 * i]));
  for (const k of of) starts[k + 1] += 1;
  for (let k = 0; k < SIDE * SIDE; k++) starts[k + 1] += starts[k];
  const next = starts.slice();
  const order = new Uint32Array(count);
  of.forEach((k, i) => { order[next[k]++] = i; });
  return { starts, order };
}

// Hue, saturation and lightness of a class.
function tone(k) {
  const few = store.classes.length <= HUES.length;
  return [few ? HUES[k] : (k * 137.508) % 360, few ? 62 : 55, (dark() ? [66, 58, 74] : [44, 36, 54])[k % 3]];
}

const dark = () => getComputedStyle(document.documentElement).getPropertyValue("--ground").trim().startsWith("#1");

let colours = []; // of the classes, as long as the theme stays
const colour = (k) => `hsl(${colours[k][0].toFixed(0)} ${colours[k][1]}% ${colours[k][2]}%)`;

// As a pixel holds it: red in the lowest byte.
function packed([h, s, l]) {
  const part = (n) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l / 100 - (s / 100) * Math.min(l / 100, 1 - l / 100) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return ((255 << 24) | (part(4) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

const visible = (i) => !shown.only || dots.flags[i] > 0;
let width = 1; // of the field, in pixels of the page
const scale = () => width * view.zoom;
const toScreen = (i) => [(dots.at[2 * i] - view.x) * scale(), (dots.at[2 * i + 1] - view.y) * scale()];
const toMap = ([x, y]) => [x / scale() + view.x, y / scale() + view.y];

function sharp(canvas) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const side = Math.round(canvas.clientWidth * ratio);
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientWidth);
  return pen;
}

let waiting = 0;
function draw() {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(paint);
}

// All dots, then what a person should look at, on top.
function paint() {
  if (!dots || !$("map").open) return;
  width = $("ground").clientWidth;
  const pen = sharp($("ground"));
  const size = Math.max(1.6, Math.min(7, (width / Math.sqrt(dots.count)) * 0.34 * Math.sqrt(view.zoom)));
  colours = store.classes.map((_, k) => tone(k));
  if (dots.count < MANY) single(pen, size);
  else together(pen, size);
  pen.lineWidth = 1.3;
  pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  const r = size / 2 + 1.8;
  for (let i = 0; i < dots.count; i++) {
    if (!dots.flags[i] || !isMeant(i)) continue;
    const [x, y] = toScreen(i);
    if (!fits(x, y)) continue;
    pen.fillStyle = colour(dots.given[i]);
    if (dots.flags[i] & ODD) {
      pen.beginPath();
      pen.rect(x - r, y - r, 2 * r, 2 * r);
      pen.fill();
    } else dot(pen, x, y, r);
    pen.stroke();
  }
  over();
}

const isMeant = (i) => shown.given < 0 || dots.given[i] === shown.given;
const fits = (x, y) => x > -9 && y > -9 && x < width + 9 && y < width + 9;

function single(pen, size) {
  for (const meant of [false, true]) {
    for (let i = 0; i < dots.count; i++) {
      if (isMeant(i) !== meant || !visible(i)) continue;
      const [x, y] = toScreen(i);
      if (!fits(x, y)) continue;
      pen.fillStyle = meant ? colour(dots.given[i]) : FAINT[Number(dark())];
      dot(pen, x, y, size / 2);
    }
  }
}

// Of many, pixels are set rather than shapes drawn: tens of thousands in a few milliseconds.
function together(pen, size) {
  const side = $("ground").width;
  const image = pen.createImageData(side, side);
  const pixels = new Uint32Array(image.data.buffer);
  const paints = colours.map(packed);
  const faint = dark() ? 0xff4b423a : 0xffd8dcdc;
  const whole = side * view.zoom;
  const wide = Math.max(1, Math.round((size * side) / width));
  for (const meant of [false, true]) {
    for (let i = 0; i < dots.count; i++) {
      if (isMeant(i) !== meant || !visible(i)) continue;
      const left = Math.round((dots.at[2 * i] - view.x) * whole - wide / 2);
      const top = Math.round((dots.at[2 * i + 1] - view.y) * whole - wide / 2);
      if (left < 0 || top < 0 || left + wide > side || top + wide > side) continue;
      const paint = meant ? paints[dots.given[i]] : faint;
      for (let y = top; y < top + wide; y++) pixels.fill(paint, y * side + left, y * side + left + wide);
    }
  }
  pen.putImageData(image, 0, 0);
}

function dot(pen, x, y, r) {
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  pen.fill();
}

// What moves with the pointer lies on a canvas of its own.
function over() {
  const pen = sharp($("drawn"));
  const style = getComputedStyle(document.documentElement);
  pen.strokeStyle = style.getPropertyValue("--blue");
  pen.lineWidth = 2;
  if (path.length > 1) {
    pen.beginPath();
    path.forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.globalAlpha = 0.15;
    pen.fillStyle = style.getPropertyValue("--blue");
    pen.fill();
    pen.globalAlpha = 1;
    pen.stroke();
  } else if (near >= 0) {
    pen.beginPath();
    pen.arc(...toScreen(near), 8, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function nearest([x, y]) {
  const reach = REACH / scale();
  const [mx, my] = toMap([x, y]);
  let best = -1;
  let least = reach * reach;
  for (let row = cell(my - reach); row <= cell(my + reach); row++) {
    for (let column = cell(mx - reach); column <= cell(mx + reach); column++) {
      for (let k = dots.starts[row * SIDE + column]; k < dots.starts[row * SIDE + column + 1]; k++) {
        const i = dots.order[k];
        const apart = (dots.at[2 * i] - mx) ** 2 + (dots.at[2 * i + 1] - my) ** 2 - (dots.flags[i] ? 1e-12 : 0);
        if (apart < least && visible(i)) [best, least] = [i, apart];
      }
    }
  }
  return best;
}

function point(i, place) {
  if (i === near) return;
  near = i;
  over();
  clearTimeout(timer);
  $("tip").hidden = true;
  if (i >= 0) timer = setTimeout(() => tip(i, place), 60);
}

async function told(i) {
  const row = dots.rows[i];
  if (!known.has(row)) known.set(row, await api.at(row));
  return known.get(row);
}

async function tip(i, [x, y]) {
  const row = await told(i).catch(() => null);
  if (!row || near !== i) return;
  const suggested = row.suggested === row.given ? "" : ` → ${store.classes[row.suggested]}`;
  $("tip").replaceChildren(
    ...(store.pictures && store.ready ? [h("img", { src: api.picture(row.id), alt: "" })] : []),
    h("span", {}, `${store.classes[row.given]}${suggested}`), row.own ? h("span", { class: "own" }, row.own) : "", h("small", {}, row.id));
  $("tip").hidden = false;
  $("tip").style.left = `${Math.max(0, Math.min(x + 14, width - $("tip").offsetWidth))}px`;
  $("tip").style.top = `${y > width / 2 ? y - $("tip").offsetHeight - 14 : y + 14}px`;
}

const place = (event) => {
  const box = $("drawn").getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

function listen() {
  const top = $("drawn");
  top.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    top.setPointerCapture(event.pointerId);
    path = [place(event)];
    event.preventDefault();
  });
  top.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (!path.length) { point(nearest(here), here); return; }
    const [x, y] = path.at(-1);
    if (Math.hypot(here[0] - x, here[1] - y) > 3) path.push(here);
    if (path.length > 2) point(-1);
    over();
  });
  top.addEventListener("pointerup", (event) => finish(place(event)));
  top.addEventListener("pointercancel", () => { path = []; over(); });
  top.addEventListener("pointerleave", () => point(-1));
  top.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), place(event)); }, { passive: false });
  $("map").addEventListener("keydown", (event) => {
    if (event.target.closest("input")) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) move(...step);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(draw).observe($("ground"));
  on("theme", () => { legend(); draw(); });
}

function zoom(by, at = [width / 2, width / 2]) {
  const [x, y] = toMap(at);
  view.zoom = Math.max(1, Math.min(MOST_ZOOM, view.zoom * by));
  const [x2, y2] = toMap(at);
  move(0, 0, x - x2, y - y2);
}

function move(across, down, x = 0, y = 0) {
  const most = 1 - 1 / view.zoom;
  const step = 0.2 / view.zoom;
  view.x = Math.max(0, Math.min(most, view.x + step * across + x));
  view.y = Math.max(0, Math.min(most, view.y + step * down + y));
  point(-1);
  draw();
}

async function finish(here) {
  const drawn = path;
  path = [];
  over();
  if (drawn.length < 4) {
    const i = nearest(here);
    const row = i < 0 ? null : await told(i).catch(() => null);
    if (row) leave("look", row.id);
    return;
  }
  const every = Math.ceil(drawn.length / CORNERS);
  const text = drawn.filter((_, i) => i % every === 0).map((corner) => toMap(corner)
    .map((value) => Number(Math.max(0, Math.min(1, value)).toFixed(4))).join(",")).join(";");
  leave("area", text);
}

function leave(what, facts) {
  $("map").close();
  rest();
  tell(what, facts);
}

function legend() {
  const counts = new Uint32Array(store.classes.length);
  for (const k of dots.given) counts[k] += 1;
  const chips = [...counts.keys()].filter((k) => counts[k]).sort((a, b) => counts[b] - counts[a] || a - b).map((k) => {
    const swatch = h("i", { "aria-hidden": "true" });
    swatch.style.background = `hsl(${tone(k)[0].toFixed(0)} ${tone(k)[1]}% ${tone(k)[2]}%)`;
    return h("button", { "aria-pressed": String(shown.given === k), title: `${number(counts[k])} labelled ${store.classes[k]}`, onclick: () => {
      shown.given = shown.given === k ? -1 : k;
      legend();
      draw();
    } }, swatch, h("span", {}, store.classes[k]));
  });
  $("legend").replaceChildren(...chips);
}

export async function open() {
  const dialog = $("map");
  if (dialog.open) return;
  if (!store.map) {
    announce("this run has no map");
    return;
  }
  dialog.showModal();
  if (!dots) {
    say($("map-about"), "loading");
    try {
      dots = read(await api.map());
    } catch (error) {
      say($("map-about"), error.message);
      return;
    }
    listen();
    const [issues, odd] = [ISSUE, ODD].map((bit) => dots.flags.reduce((sum, flag) => sum + Boolean(flag & bit), 0));
    say($("map-about"), `${number(dots.count)} samples by given label, near those that look like them. ${number(issues)} suspicious labels have a ring` +
      `${odd ? `, ${number(odd)} odd samples a square` : ""}. Draw around dots to list them, or press one.`);
    $("map-only").addEventListener("change", () => { shown.only = $("map-only").checked; draw(); });
    $("map-in").addEventListener("click", () => zoom(1.6));
    $("map-out").addEventListener("click", () => zoom(1 / 1.6));
    $("map-close").addEventListener("click", () => { dialog.close(); rest(); });
  }
  legend();
  draw();
}
