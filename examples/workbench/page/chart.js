// Draws what happened on a row as SVG: time from left to right, and now at the right edge.

import { SIGNS } from "/spans.js";
import { t } from "/words.js";

const NS = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const TALL = 46;
const SHAPES = {
  leading: [8, 26], stale: [8, 26], kept: [14, 14],
};

/** How one stretch of time looks. */
export function shape(kind, x, width) {
  if (kind === "waiting") return svg("line", { class: "waiting", x1: x + 2, x2: x + Math.max(width - 2, 3), y1: 21, y2: 21, "data-kind": kind });
  if (kind === "cut") return svg("line", { class: "cut", x1: x, x2: x + width, y1: 43, y2: 43, "data-kind": kind });
  if (kind === "frozen") return svg("rect", { class: "frozen", x, y: 1.5, width, height: 39, rx: 3, "data-kind": kind });
  const [y, height] = SHAPES[kind];
  return svg("rect", { class: kind, x, y, width, height, rx: 3, "data-kind": kind });
}

/** Where each mark stands: results of the store above, writes below. */
export function sign(kind, x) {
  const below = kind === "accepted" || kind === "refused";
  return svg("text", { class: `mark mark-${kind}`, x, y: below ? 45 : kind === "skipped" ? 26 : 8, "data-mark": kind }, SIGNS[kind]);
}

/** Draws a row's strip; `pixels` for each millisecond, `from` at its left edge, a line at `now` if that is given. */
export function draw(strip, { spans, marks }, from, pixels, width, now = null) {
  const parts = [];
  const at = (ms) => (ms - from) * pixels;
  const order = { waiting: 0, kept: 1, leading: 2, stale: 3, frozen: 4, cut: 5 };
  for (const span of [...spans].sort((one, other) => order[one.kind] - order[other.kind])) {
    const left = Math.max(at(span.from), -4);
    const wide = Math.min(at(span.to), width + 4) - left;
    if (wide <= 0) continue;
    parts.push(shape(span.kind, left, Math.max(wide, 1.5)));
    const label = span.kind === "leading" && span.fence ? String(span.fence) : span.kind === "frozen" ? t("flag.frozen") : "";
    if (label && wide > 8 * label.length + 8) {
      const y = span.kind === "frozen" ? 38 : 25;
      parts.push(svg("text", { class: `${span.kind}-text`, x: Math.max(left, 0) + 6, y }, label));
    }
  }
  if (now !== null) parts.push(svg("line", { class: "now", x1: at(now), x2: at(now), y1: 0, y2: TALL }));
  // Where many come at once, one sign stands for those that would cover each other.
  const last = {};
  for (const mark of marks) {
    const x = at(mark.at);
    if (x - (last[mark.kind] ?? -99) < 5) continue;
    last[mark.kind] = x;
    parts.push(sign(mark.kind, x));
  }
  strip.setAttribute("viewBox", `0 0 ${width} ${TALL}`);
  strip.replaceChildren(...parts);
}

/** The scale below the rows. */
export function drawAxis(strip, from, now, pixels, width, label) {
  const step = [1000, 2000, 5000, 10000].find((step) => step * pixels > 55) ?? 20000;
  const parts = [];
  for (let ms = Math.max(0, Math.ceil(from / step) * step); ms <= now; ms += step) {
    const x = (ms - from) * pixels;
    parts.push(svg("line", { class: "tick", x1: x, x2: x, y1: 0, y2: 5 }));
    // A label that would not fit is left out.
    if (x < width - 24) parts.push(svg("text", { class: "ticktext", x: Math.max(x - 8, 0), y: 18 }, label(ms)));
  }
  strip.setAttribute("viewBox", `0 0 ${width} 22`);
  strip.replaceChildren(...parts);
}

/** A ring that shows how much of a lease is left; the number stands in it. */
export function ring(part, text) {
  const around = 2 * Math.PI * 30;
  const image = svg("svg", { viewBox: "0 0 76 76", "aria-hidden": "true" });
  image.append(svg("circle", { class: "track", cx: 38, cy: 38, r: 30 }));
  const left = svg("path", { class: "left", d: arc(Math.min(Math.max(part, 0), 0.9999)) });
  left.setAttribute("pathLength", String(around));
  image.append(left, svg("text", { x: 38, y: 38 }, text));
  return image;
}

function arc(part) {
  const angle = 2 * Math.PI * part;
  const x = 38 + 30 * Math.sin(angle);
  const y = 38 - 30 * Math.cos(angle);
  return `M38 8A30 30 0 ${part > 0.5 ? 1 : 0} 1 ${x.toFixed(2)} ${y.toFixed(2)}`;
}

export function legend(list) {
  const items = [];
  for (const kind of ["waiting", "leading", "stale", "kept", "frozen", "cut"]) {
    items.push([kind, shape(kind, 4, 44)]);
  }
  for (const kind of Object.keys(SIGNS)) {
    const large = sign(kind, 26);
    large.setAttribute("y", 30);
    items.push([kind, large]);
  }
  list.replaceChildren(...items.map(([kind, image]) => {
    const item = document.createElement("li");
    const strip = svg("svg", { class: "strip", viewBox: "0 -2 52 50", "aria-hidden": "true" });
    strip.append(image);
    const words = document.createElement("span");
    words.textContent = t(`legend.${kind}`);
    item.append(strip, words);
    return item;
  }));
}
