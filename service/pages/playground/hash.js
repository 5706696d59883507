/** The state of the page in its address, behind the #, which browsers do not send anywhere: "#translate?text=A+dog". */

const LONGEST_TEXT = 2000;

/** @returns {{view: string, state: URLSearchParams}} */
export function readHash() {
  const [view, query = ""] = location.hash.slice(1).split("?", 2);
  return { view, state: new URLSearchParams(query) };
}

/**
 * @param {string} view
 * @param {Record<string, string>} state  Empty values are left out.
 */
export function writeHash(view, state) {
  const kept = Object.entries(state).filter(([, value]) => value !== "" && value.length <= LONGEST_TEXT);
  const query = new URLSearchParams(kept).toString();
  history.replaceState(null, "", `#${view}${query && `?${query}`}`);
}
