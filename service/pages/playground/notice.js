/** A notice that says what went wrong, and what to do. */

import { Problem, Unreachable, useKey } from "./api.js";
import { announce, element } from "./dom.js";

export class Notice {
  #box;
  #retry;

  /**
   * @param {HTMLElement} box
   * @param {() => void} retry
   */
  constructor(box, retry) {
    this.#box = box;
    this.#retry = retry;
  }

  hide() {
    this.#box.hidden = true;
    this.#box.replaceChildren();
  }

  /** @param {Error} error */
  show(error) {
    if (error instanceof Unreachable) {
      this.#say("attend cannot be reached.", "Write on, or come back online, and it is tried again.", this.#again());
    } else if (error instanceof Problem && error.wantsKey) {
      this.#say("This service asks for a key.", sentence(error.message), this.#keyForm());
    } else if (error instanceof Problem && error.status === 413) {
      this.#say("The text is too long.", sentence(error.message));
    } else if (error instanceof Problem && error.busy) {
      this.#say("attend is still busy.", sentence(error.message), this.#again());
    } else if (error instanceof Problem && error.status === 422) {
      this.#say("attend cannot take this.", sentence(error.message));
    } else {
      this.#say("That did not work.", sentence(error.message), this.#again());
    }
  }

  /** @param {number} seconds */
  busy(seconds) {
    this.#say("attend is busy.", `Asking once more in ${seconds} s.`);
  }

  #say(title, detail, ...more) {
    this.#box.replaceChildren(element("strong", {}, title), " ", element("span", {}, detail), ...more);
    this.#box.hidden = false;
    this.#box.scrollIntoView({ block: "nearest" });
    announce(`${title} ${detail}`);
  }

  #again() {
    return element("button", { className: "plain", onclick: this.#retry }, "Try again");
  }

  #keyForm() {
    const field = element("input", { type: "password", autocomplete: "off", "aria-label": "Key" });
    const form = element("form", { className: "key" }, field, element("button", { className: "plain" }, "Use this key"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      useKey(field.value.trim());
      this.#retry();
    });
    return form;
  }
}

/** Adds a full stop, which the detail of a problem does not have. */
function sentence(detail) {
  return /[.!?]$/.test(detail) ? detail : `${detail}.`;
}
