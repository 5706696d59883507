/** The evidence of a text's tokens: for one label, or against it. */

import { css, diverging, isDark } from "./colors.js";
import { element } from "./dom.js";
import { unitsOf } from "./spans.js";

/**
 * @typedef {import("./types.js").Evidence} Evidence
 * @typedef {{against: string, for: string, label: string, others: string[]}} Poles
 *   The ends of the scale. Two labels are always on the same sides.
 */

/** Evidence below this is shown pale: weak evidence must not look strong because there is no stronger. */
const FULL_COLOR_AT_LEAST = 0.05;
const STRONGEST = 5;
/** Words with less than this share of the strongest evidence are not listed. */
const WORTH_A_LINE = 0.04;

/**
 * @param {string[]} labels
 * @param {string} chosen  The chosen label, if there are more than two.
 * @returns {Poles}
 */
export function poles(labels, chosen) {
  const label = labels.length === 2 ? labels[1] : chosen;
  const others = labels.filter((other) => other !== label);
  return { label, others, for: label, against: others.length === 1 ? others[0] : `not ${label}` };
}

/**
 * Returns how much more the label's logit loses without a token than those of other labels.
 *
 * @param {Record<string, number>} contributions
 * @param {Poles} poles
 */
export function evidenceOf(contributions, { label, others }) {
  return contributions[label] - others.reduce((sum, other) => sum + contributions[other], 0) / others.length;
}

/**
 * Gives tokens that are parts of one character the sum of their evidence.
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
 * Returns words with the evidence of their tokens together. A token that begins where the one before it ended, without
 * a space, belongs to the same word.
 *
 * @param {Evidence["tokens"]} tokens
 * @param {number[]} values  The evidence of each token.
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
 * Shows the legend of the shades.
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
 * Returns a list of the words with the strongest evidence for one end.
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
