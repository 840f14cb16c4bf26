// How a score moved over training: (epoch, score) pairs go in, a small drawing with words comes out.

import { points as shown, svg } from "./dom.js";

const WIDTH = 280;
const HEIGHT = 64;
const PAD = 4;

export function sparkline(points) {
  const first = points[0][0];
  const last = points[points.length - 1][0];
  const x = (epoch) => PAD + ((WIDTH - 2 * PAD) * (epoch - first)) / Math.max(last - first, 1);
  const y = (share) => PAD + (HEIGHT - 2 * PAD) * (1 - share);
  const path = points.map(([epoch, share], i) => `${i ? "L" : "M"}${x(epoch).toFixed(1)} ${y(share).toFixed(1)}`).join("");
  const [, from] = points[0];
  const [, to] = points[points.length - 1];
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `label score, after epoch ${first}: ${shown(from)}, after epoch ${last}: ${shown(to)}` },
    svg("line", { class: "half", x1: PAD, x2: WIDTH - PAD, y1: y(0.5), y2: y(0.5) }),
    svg("path", { d: path }),
    svg("circle", { cx: x(last), cy: y(to), r: 3 }));
}
