/** Shows a request as a command for curl. */

import { addressOf, hasKey } from "./api.js";
import { copies, fill, parts } from "./dom.js";

/**
 * Returns the command for POSIX shells. It has no key: a command may be pasted where others see it.
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

/** Puts a text in single quotes, in which a shell interprets only the single quote itself. */
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
