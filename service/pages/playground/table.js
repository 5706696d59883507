/** An attention matrix as a table, for those who cannot see its colours. */

import { element } from "./dom.js";
import { label } from "./spans.js";

const MOST_CELLS = 10_000;

/**
 * @param {import("./tensors.js").Weights} weights
 * @param {string} name
 * @returns {HTMLElement}
 */
export function tableOf({ rows, columns, values }, name) {
  if (values.length > MOST_CELLS) {
    return element("p", { className: "quiet" }, `${values.length.toLocaleString("en")} numbers are too many for a table here; the request below has them all.`);
  }
  const head = element("tr", {}, element("td", {}), ...columns.map((token) => element("th", { scope: "col" }, label(token))));
  const body = rows.map((token, i) => {
    const cells = [...values.slice(i * columns.length, (i + 1) * columns.length)];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, label(token)),
      ...cells.map((value) => element("td", {}, value.toFixed(2))),
    );
  });
  return element("table", {}, element("caption", {}, name), element("thead", {}, head), element("tbody", {}, ...body));
}
