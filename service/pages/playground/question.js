/** A request that is sent again whenever the visitor changes the text. */

import { Problem, expected, post, postInPieces } from "./api.js";

const PAUSE_MS = 150;
const LONGEST_WAIT_S = 10;

/**
 * @typedef {object} Listener
 * @property {(answer: any, timing: import("./types.js").Timing, refused: Map<string, string>) => void} answered
 *   Called with the answer, the fields that had to be left out, and why the service refused them.
 * @property {(error: Error) => void} failed
 * @property {(seconds: number) => void} waiting  The service is busy; it is asked again after these seconds.
 * @property {(text: string) => void} arriving  The beginning of the answer to a long text.
 */

/** From this number of characters on, an answer is shown as it arrives. */
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
   * Sends a request after a pause, unless a newer one replaces it. The former request is cancelled, on the server too.
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

  /** Sends a failed request once more; does nothing if none failed. */
  retry() {
    this.#again?.();
  }

  async #send(body, optional, signal) {
    try {
      const { answer, timing, refused } = await this.#patiently(body, optional, signal);
      if (!signal.aborted) this.#listener.answered(answer, timing, refused);
    } catch (error) {
      if (signal.aborted) return;
      expected(error);
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

  /** Sends a request: once more after a pause if the service is busy, and without optional fields that it refuses. */
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
