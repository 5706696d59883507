/** One question that is asked again and again while its author is still writing it. */

import { Problem, Unreachable, post, postInPieces } from "./api.js";

const PAUSE_MS = 150;
const LONGEST_WAIT_S = 10;

/**
 * @typedef {object} Listener
 * @property {(answer: any, timing: import("./types.js").Timing, refused: Map<string, string>) => void} answered
 *   With the fields that had to be left out, and the service's words why.
 * @property {(error: Error) => void} failed
 * @property {(seconds: number) => void} waiting  The service is busy; it is asked again after so long.
 * @property {(text: string) => void} arriving  The beginning of the answer to a long text.
 */

/** Of characters, from which on an answer is shown as it comes. */
const LONG = 400;

export class Question {
  #path;
  #listener;
  #timer = 0;
  #controller = new AbortController();
  /** @type {(() => void) | null} */
  #again = null;

  /**
   * @param {string} path
   * @param {Listener} listener
   */
  constructor(path, listener) {
    this.#path = path;
    this.#listener = listener;
    addEventListener("online", () => this.retry());
  }

  /**
   * Asks after a pause, unless it is superseded until then. What was asked before is given up, on the server too.
   *
   * @param {Record<string, unknown>} body
   * @param {string[]} optional  Fields that may be left out if the service refuses them.
   * @param {{now?: boolean}} [options]
   */
  ask(body, optional, { now = false } = {}) {
    this.cancel();
    const { signal } = this.#controller;
    this.#timer = setTimeout(() => this.#send(body, optional, signal), now ? 0 : PAUSE_MS);
  }

  cancel() {
    clearTimeout(this.#timer);
    this.#controller.abort();
    this.#controller = new AbortController();
    this.#again = null;
  }

  /** Asks once more what failed; nothing happens where nothing did. */
  retry() {
    this.#again?.();
  }

  async #send(body, optional, signal) {
    try {
      const { answer, timing, refused } = await this.#patiently(body, optional, signal);
      if (!signal.aborted) this.#listener.answered(answer, timing, refused);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
      this.#again = () => this.ask(body, optional, { now: true });
      this.#listener.failed(error);
    }
  }

  #post(body, signal) {
    if (this.#path !== "translate" || body.text.length < LONG || body.attention) return post(this.#path, body, signal);
    let text = "";
    return postInPieces(this.#path, body, signal, (piece) => {
      text += piece;
      if (!signal.aborted) this.#listener.arriving(text);
    });
  }

  /** Once more after a while where the service is busy; without the optional fields that it refuses. */
  async #patiently(body, optional, signal) {
    const refused = new Map();
    let waited = false;
    for (;;) {
      try {
        return { ...(await this.#post(body, signal)), refused };
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        const unwanted = error.status === 422 ? optional.filter((name) => name in body && error.fields.includes(name)) : [];
        if (unwanted.length > 0) {
          body = Object.fromEntries(Object.entries(body).filter(([name]) => !unwanted.includes(name)));
          for (const name of unwanted) refused.set(name, error.message);
        } else if (error.busy && !waited && error.retryAfter <= LONGEST_WAIT_S) {
          waited = true;
          this.#listener.waiting(error.retryAfter);
          await pause(error.retryAfter * 1000, signal);
        } else {
          throw error;
        }
      }
    }
  }
}

/** @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
