/** Shows how long an answer took: the round trip that the page measured, and the parts that the service measured. */

import { element } from "./dom.js";

const SHADES = ["queue", "tokenize", "encode", "decode", "attention", "rest"];

/**
 * @param {HTMLElement} box
 * @param {import("./types.js").Timing | null} timing
 */
export function showTiming(box, timing) {
  if (timing === null) {
    box.replaceChildren();
    return;
  }
  const { roundTrip } = timing;
  const inside = timing.parts.reduce((sum, { ms }) => sum + ms, 0);
  const parts = [...timing.parts, { name: "rest", ms: Math.max(0, roundTrip - inside) }];
  const bar = element("span", { className: "timing-bar", "aria-hidden": "true" });
  for (const { name, ms } of parts) {
    const piece = element("span", { className: `timing-part shade-${SHADES.indexOf(name)}`, title: `${name} ${written(ms)}` });
    piece.style.flexGrow = String(ms);
    bar.append(piece);
  }
  const legend = parts.filter(({ ms }) => ms >= 0.5).map(({ name, ms }) => `${name}\u00a0${Math.round(ms)}`);
  box.replaceChildren(element("strong", { title: "From sending the request to having read the answer" }, written(roundTrip)), bar, element("span", { className: "quiet" }, legend.join(" · ")));
}

/** @param {number} ms */
function written(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}
