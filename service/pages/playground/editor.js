/**
 * A text area whose words can be marked.
 *
 * A layer behind the transparent text area has the same text in the same type, so that its marked words are seen under
 * the text. The layer gives the text area its height, and tells which word the pointer or the caret is at.
 */

import { WordLine } from "./wordline.js";

const MOVING_KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

export class Editor {
  #area;

  /**
   * @param {HTMLElement} root
   * @param {object} listener
   * @param {() => void} listener.changed
   * @param {(word: number | null, spoken: boolean) => void} listener.pointed  At a word, by pointer or by caret.
   */
  constructor(root, { changed, pointed }) {
    this.words = new WordLine(root.querySelector(".words"));
    this.#area = root.querySelector("textarea");
    this.#area.addEventListener("input", () => {
      pointed(null, false);
      this.#follow();
      changed();
    });
    this.#area.addEventListener("pointermove", (event) => pointed(this.words.atPoint(event.clientX, event.clientY), false));
    this.#area.addEventListener("pointerleave", () => pointed(null, false));
    this.#area.addEventListener("blur", () => pointed(null, false));
    this.#area.addEventListener("click", () => pointed(this.#wordAtCaret(), false));
    this.#area.addEventListener("keyup", (event) => {
      if (MOVING_KEYS.has(event.key)) pointed(this.#wordAtCaret(), true);
    });
    this.#follow();
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#follow();
  }

  /** @param {import("./types.js").Token[]} tokens  Of the text as it is now. */
  show(tokens) {
    this.words.show(this.text, tokens);
  }

  /** @param {string} language */
  set language(language) {
    this.#area.lang = language;
    this.words.box.lang = language;
  }

  focus() {
    this.#area.focus();
  }

  #follow() {
    this.words.change(this.text);
    // `auto` takes the direction from the text; the layer must have the same direction, also while it is empty.
    this.words.box.dir = getComputedStyle(this.#area).direction;
  }

  #wordAtCaret() {
    const { selectionStart, selectionEnd } = this.#area;
    return selectionStart === selectionEnd ? this.words.atOffset(selectionStart) : null;
  }
}
