/** What is told beside a translation: other wordings, words of which the model was unsure, and what checks found. */

import { segments } from "./directions.js";
import { element } from "./dom.js";

/** A word that is less probable is underlined. */
const UNSURE = 0.5;

/** Returns another translation, in which words that the first one does not have stand out. */
export function wording(text, first, language) {
  const known = new Set(segments(first, language).map(({ segment }) => segment.toLowerCase()));
  const isKnown = ({ segment, isWordLike }) => !isWordLike || known.has(segment.toLowerCase());
  const words = segments(text, language).map((word) => (isKnown(word) ? word.segment : element("em", {}, word.segment)));
  return element("li", { dir: "auto" }, ...words);
}

/**
 * Returns how probable each token is of which the model was unsure, by the token's number.
 *
 * @param {import("./types.js").Token[]} tokens
 * @param {import("./types.js").SureWord[]} words
 * @returns {Map<number, number>}
 */
export function doubts(tokens, words) {
  const unsure = new Map(words.filter((word) => word.probability < UNSURE).map((word) => [word.span[0], word.probability]));
  const found = tokens.map(({ span }, i) => /** @type {[number, number | undefined]} */ ([i, unsure.get(span[0])]));
  return new Map(found.filter(([, probability]) => probability !== undefined));
}

/** Returns what checks found, for people. */
export function checked(checks) {
  const found = checks.map(({ kind, source, target }) => element("li", { dir: "auto" }, `${kind}: ${source}${target ? ` → ${target}` : ""}`));
  return [element("h3", {}, checks.length > 0 ? "Worth a look" : "Checked: nothing lost"), element("ul", {}, ...found)];
}
