/** Translations that the visitor has corrected. The service keeps them in a memory for each direction. */

import { expected, makeMemory, memories, storeSegment } from "./api.js";

const NAME = "Playground";

export class Corrections {
  #parts;
  #changed;
  #source = "";
  #target = "";
  /** What is corrected. */
  #text = "";
  /** The ids of the memories, by direction. @type {Map<string, string>} */
  #ids = new Map();

  /**
   * @param {Record<string, any>} parts
   * @param {() => void} changed  Called when a correction is kept.
   */
  constructor(parts, changed) {
    this.#parts = parts;
    this.#changed = changed;
    parts.correct.addEventListener("click", () => this.#open());
    parts.correction.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep();
    });
    parts.discard.addEventListener("click", () => this.close());
    this.#list().catch(expected);
  }

  /** @param {string} source  "" if it is not known yet. @param {string} target */
  between(source, target) {
    [this.#source, this.#target] = [source, target];
  }

  /** The fields of a request. */
  get asked() {
    const id = this.#ids.get(this.#direction);
    return id ? { memory_id: id } : {};
  }

  /**
   * Offers to correct a translation.
   *
   * @param {string} text
   * @param {string} translation
   * @param {object[]} [used]  What was taken from the memory.
   */
  offer(text, translation, used = []) {
    this.close();
    this.#text = text;
    this.#parts.corrected.value = translation;
    this.#parts.correct.hidden = this.#source === "";
    this.#parts.remembered.hidden = used.length === 0;
  }

  clear() {
    this.close();
    this.#parts.correct.hidden = this.#parts.remembered.hidden = true;
  }

  close() {
    this.#parts.correction.hidden = true;
    this.#say("");
  }

  #open() {
    this.#parts.correction.hidden = false;
    this.#parts.corrected.focus();
  }

  get #direction() {
    return `${this.#source} ${this.#target}`;
  }

  async #keep() {
    const [text, right, direction] = [this.#text, this.#parts.corrected.value, this.#direction];
    try {
      if (!this.#ids.has(direction)) await this.#list();
      if (!this.#ids.has(direction)) {
        this.#ids.set(direction, (await makeMemory(NAME, this.#source, this.#target)).id);
      }
      await storeSegment(this.#ids.get(direction), text, right);
    } catch (error) {
      this.#say(expected(error).message);
      return;
    }
    this.close();
    this.#changed();
  }

  async #list() {
    for (const { id, name, source, target } of await memories()) {
      if (name === NAME) this.#ids.set(`${source} ${target}`, id);
    }
  }

  #say(text) {
    this.#parts["correction-said"].textContent = text;
    this.#parts["correction-said"].hidden = text === "";
  }
}
