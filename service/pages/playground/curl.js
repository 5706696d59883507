/** A request as a command line that does the same. */

import { addressOf, hasKey } from "./api.js";
import { copies, fill, parts } from "./dom.js";

/**
 * For POSIX shells. The key is not written out: a command that is pasted somewhere should not carry it.
 *
 * @param {string} path
 * @param {object} body
 */
export function curlCommand(path, body) {
  const key = hasKey() ? [`-H "authorization: Bearer $ATTEND_KEY"`] : [];
  return [
    `curl -s ${quoted(addressOf(path))}`,
    `-H 'content-type: application/json'`,
    ...key,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

/** In single quotes, in which a shell reads everything as it is, but for the single quote itself. */
export function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export class CurlPanel {
  #command;

  /** @param {HTMLDetailsElement} panel */
  constructor(panel) {
    fill(panel, "curl-template");
    const { command, copy } = parts(panel);
    this.#command = command;
    copies(copy, () => command.textContent);
  }

  /** @param {string} path @param {object} body */
  show(path, body) {
    this.#command.textContent = curlCommand(path, body);
  }
}
