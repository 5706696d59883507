/** What the tokens of a text said for one label and against the others. */

import { css, diverging, isDark } from "./colors.js";
import { element } from "./dom.js";
import { unitsOf } from "./spans.js";

/**
 * @typedef {import("./types.js").Evidence} Evidence
 * @typedef {{against: string, for: string, label: string, others: string[]}} Poles
 *   The ends of the scale. With two labels they are these two, always on the same sides.
 */

/** Below so much all is shown pale: weak evidence is not to look strong only because there is no other. */
const FULL_COLOR_AT_LEAST = 0.05;
const STRONGEST = 5;
/** Of the strongest evidence; what is weaker is not worth a line. */
const WORTH_A_LINE = 0.04;

/**
 * @param {string[]} labels
 * @param {string} chosen  Where there are more than two.
 * @returns {Poles}
 */
export function poles(labels, chosen) {
  const label = labels.length === 2 ? labels[1] : chosen;
  const others = labels.filter((other) => other !== label);
  return { label, others, for: label, against: others.length === 1 ? others[0] : `not ${label}` };
}

/**
 * How much more the label's logit loses without a token than the others'.
 *
 * @param {Record<string, number>} contributions
 * @param {Poles} poles
 */
export function evidenceOf(contributions, { label, others }) {
  return contributions[label] - others.reduce((sum, other) => sum + contributions[other], 0) / others.length;
}

/**
 * Tokens that are parts of one character have their evidence together.
 *
 * @param {number[]} values
 * @param {number[][]} groups
 */
export function summed(values, groups) {
  const together = [...values];
  for (const tokens of groups) {
    const sum = tokens.reduce((total, i) => total + values[i], 0);
    for (const i of tokens) together[i] = sum;
  }
  return together;
}

/**
 * Words and what their tokens say together: a token that goes on where the one before it ended, without a space, is of
 * the same word.
 *
 * @param {Evidence["tokens"]} tokens
 * @param {number[]} values  Of each token.
 * @param {string} text
 */
export function words(tokens, values, text) {
  const units = unitsOf(text);
  /** @type {{start: number, end: number, value: number}[]} */
  const found = [];
  tokens.forEach(({ token, span }, i) => {
    const [start, end] = span.map(units);
    const last = found.at(-1);
    if (start >= end) return;
    if (last && start <= last.end && !/^[▁\p{P}]/u.test(token)) {
      last.end = Math.max(last.end, end);
      last.value += values[i];
    } else {
      found.push({ start, end, value: values[i] });
    }
  });
  return found.map(({ start, end, value }) => ({ word: text.slice(start, end), value }));
}

/** @param {number[]} values */
export function fullColorAt(values) {
  return values.reduce((largest, value) => Math.max(largest, Math.abs(value)), FULL_COLOR_AT_LEAST);
}

/** @param {number[]} values */
export function shades(values) {
  const full = fullColorAt(values);
  return values.map((value) => css(diverging(value / full, isDark())));
}

/** @param {number} value */
export function signed(value, digits = 3) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}

/**
 * The legend of the shades.
 *
 * @param {HTMLElement} box
 * @param {Poles} ends
 * @param {number} full
 */
export function showScale(box, ends, full) {
  const bar = element("span", { className: "scale-bar", "aria-hidden": "true" });
  const stops = [-1, -0.5, 0, 0.5, 1].map((value) => css(diverging(value, isDark())));
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  box.replaceChildren(
    element("span", {}, `${ends.against} ${signed(-full, 2)}`),
    bar,
    element("span", {}, `${signed(full, 2)} ${ends.for}`),
  );
}

/**
 * The strongest words for each end, as a list.
 *
 * @param {string} title
 * @param {{word: string, value: number}[]} words
 * @param {number} full
 */
export function strongest(title, words, full) {
  const worthy = words.filter(({ value }) => Math.abs(value) > WORTH_A_LINE * full);
  const ranked = worthy.toSorted((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, STRONGEST);
  const items = ranked.map(({ word, value }) => {
    const bar = element("span", { className: "evidence-bar", "aria-hidden": "true" });
    bar.style.width = `${Math.min(100, (100 * Math.abs(value)) / full)}%`;
    bar.style.backgroundColor = css(diverging(value < 0 ? -1 : 1, isDark()));
    const text = element("span", { className: "evidence-word", dir: "auto" }, word);
    return element("li", {}, bar, text, element("span", { className: "number" }, signed(value)));
  });
  const none = element("p", { className: "quiet" }, "nothing");
  return element("div", {}, element("h3", {}, title), items.length > 0 ? element("ol", {}, ...items) : none);
}
