/** The translation while the text is being written, by a WebSocket. Where none can be opened, the answers after each pause
 * are all that the page shows. */

import { addressOf, keyField } from "./api.js";

/** How long after a failure no other WebSocket is opened. */
const REST_MS = 60_000;

export class Live {
  #heard;
  /** @type {WebSocket | null} */
  #socket = null;
  #closedUntil = 0;
  #options = "";
  #text = "";
  #updates = 0;

  /** @param {(text: string) => void} heard  Gets the translation of the last text as far as it is known. */
  constructor(heard) {
    this.#heard = heard;
  }

  /**
   * @param {string} text  The text so far.
   * @param {object} options  Languages and the like.
   */
  ask(text, options) {
    const socket = this.#opened();
    if (socket?.readyState !== WebSocket.OPEN) return;
    const written = JSON.stringify(options);
    const goesOn = written === this.#options && this.#text !== "" && text.startsWith(this.#text);
    [this.#text, this.#options] = [text, written];
    this.#updates += 1;
    socket.send(JSON.stringify({ text, ...(!goesOn && { ...options, ...keyField() }) }));
  }

  /** Ignores what still comes for the last text. */
  forget() {
    this.#text = "";
  }

  #opened() {
    if (this.#socket === null && Date.now() >= this.#closedUntil) {
      const socket = new WebSocket(addressOf("translate/live").replace(/^http/, "ws"));
      socket.addEventListener("message", ({ data }) => this.#hear(JSON.parse(data)));
      socket.addEventListener("close", () => {
        this.#socket = null;
        this.#closedUntil = Date.now() + REST_MS;
      });
      [this.#socket, this.#updates, this.#text] = [socket, 0, ""];
    }
    return this.#socket;
  }

  #hear({ update, code, concluded, tentative }) {
    if (code === undefined && update === this.#updates && this.#text !== "" && concluded + tentative !== "") {
      this.#heard(concluded + tentative);
    } else if (code !== undefined) {
      this.forget();
    }
  }
}
