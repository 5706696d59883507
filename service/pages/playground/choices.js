/** Words that could stand at a place of the translation: choosing one translates the rest anew. */

import { expected, post } from "./api.js";
import { segments } from "./directions.js";
import { announce, element } from "./dom.js";

const OTHER_WORDS = 5;

export class Choices {
  #box;
  #opener;
  #chosen;
  #controller = new AbortController();

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} opener  Gets the focus back.
   * @param {(prefix: string) => void} chosen  A word is chosen, with which the translation begins after what is before it.
   */
  constructor(box, opener, chosen) {
    this.#box = box;
    this.#opener = opener;
    this.#chosen = chosen;
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.close();
      opener.focus();
    });
  }

  close() {
    this.#controller.abort();
    this.#box.hidden = true;
  }

  /**
   * Offers the words that could come after the beginning of a translation.
   *
   * @param {Record<string, unknown>} asked  What the translation was asked for.
   * @param {string} prefix
   * @param {string} language
   * @param {boolean} focused  Whether the first word gets the focus.
   */
  async offer(asked, prefix, language, focused) {
    this.close();
    const { signal } = (this.#controller = new AbortController());
    try {
      const { answer } = await post("translate", { ...asked, target_prefix: prefix, alternatives: OTHER_WORDS }, signal);
      if (signal.aborted) return;
      const [first] = answer.translations;
      const words = new Map();
      for (const { text, probability } of [first, ...(first.alternatives ?? [])]) {
        const word = firstWord(text.slice(prefix.length), language);
        if (word.trim() && !words.has(word)) words.set(word, probability);
      }
      this.#show([...words].map(([word, probability]) => this.#button(prefix, word, probability)));
    } catch (error) {
      if (signal.aborted) return;
      expected(error);
      this.#show([element("span", {}, error.message)]);
    }
    if (focused) this.#box.querySelector("button")?.focus();
  }

  #show(items) {
    const list = element("ul", {}, ...items.map((item) => element("li", {}, item)));
    this.#box.replaceChildren(element("h3", {}, "Words that could stand here"), list);
    this.#box.hidden = false;
    announce(`${items.length} words could stand here`);
  }

  #button(prefix, word, probability) {
    const shown = probability === undefined ? "" : probability < 0.01 ? "< 1%" : `${Math.round(100 * probability)}%`;
    const button = element("button", { className: "plain" }, element("bdi", {}, word.trim()), " ", element("small", {}, shown));
    button.addEventListener("click", () => {
      this.close();
      this.#opener.focus();
      this.#chosen(prefix + word);
    });
    return button;
  }
}

/** Returns the beginning of a text, up to the end of its first word. */
function firstWord(text, language) {
  const parts = [...segments(text, language)];
  const end = parts.findIndex(({ isWordLike }) => isWordLike);
  return parts.slice(0, end + 1 || parts.length).map(({ segment }) => segment).join("");
}
