/** Lists of languages and models to choose from. */

import { nameOf } from "./directions.js";
import { element } from "./dom.js";

/** Returns a language as an option. @param {string} code */
export function named(code) {
  return [code, nameOf(code)];
}

/**
 * Fills a list with options, sorted by name.
 *
 * @param {HTMLSelectElement} select
 * @param {string[][]} options  Values and names.
 * @param {string} chosen
 * @param {string[][]} [first]  Options before all others.
 */
export function offer(select, options, chosen, first = []) {
  const alike = (name) => options.filter(([, other]) => other === name).length > 1;
  const sorted = options.toSorted(([, a], [, b]) => a.localeCompare(b, "en"));
  const told = sorted.map(([value, name]) => [value, alike(name) ? `${name} (${value})` : name]);
  select.replaceChildren(...[...first, ...told].map(([value, name]) => element("option", { value }, name)));
  select.value = chosen;
}
