/** Terms that a translation must use: written, or stored on the service. */

import { expected, glossaries, uploadGlossary } from "./api.js";
import { element } from "./dom.js";

const TERM = /^\s*(.+?)\s*(?:=|\t)\s*(.+?)\s*$/;
const SHOWN = 3;

/** A word in each language, for the example. */
const DOG = { en: "dog", fr: "clebs", de: "Köter", ru: "пёс", ja: "ワンちゃん" };

export class GlossaryField {
  #parts;
  #changed;
  #source = "";
  #target = "";

  /**
   * @param {Record<string, any>} parts
   * @param {() => void} changed
   */
  constructor(parts, changed) {
    this.#parts = parts;
    this.#changed = changed;
    parts.terms.addEventListener("input", () => this.#follow());
    parts.terms.addEventListener("blur", () => this.#tell());
    parts.stored.addEventListener("change", changed);
    parts.glossary.addEventListener("toggle", () => parts.glossary.open && this.#list());
    parts["pick-terms"].addEventListener("click", () => parts["terms-file"].click());
    parts["terms-file"].addEventListener("change", () => this.#upload());
  }

  get text() {
    return this.#parts.terms.value;
  }

  set text(text) {
    this.#parts.terms.value = text;
    this.#parts.glossary.open = text !== "" || this.#parts.stored.value !== "";
    this.#tell();
  }

  /** @param {string} source  "" if it is not known yet. @param {string} target */
  between(source, target) {
    [this.#source, this.#target] = [source, target];
    this.#parts.terms.placeholder = `${DOG[source] ?? DOG.en} = ${DOG[target] ?? "…"}`;
  }

  /** The fields of a request. */
  get asked() {
    const terms = this.#lines().map((line) => TERM.exec(line)).filter((term) => term !== null);
    const glossary = Object.fromEntries(terms.map(([, source, target]) => [source, target]));
    const stored = this.#parts.stored.value;
    return { ...(terms.length > 0 && { glossary }), ...(stored && { glossary_id: stored }) };
  }

  #lines() {
    return this.text.split("\n");
  }

  #follow() {
    this.#tell(this.text.slice(0, this.#parts.terms.selectionStart).split("\n").length - 1);
    this.#changed();
  }

  /** Names the lines that are no terms. @param {number} [writing]  The line that is still being written. */
  #tell(writing = -1) {
    const wrong = this.#lines()
      .map((line, i) => ({ line: line.trim(), i }))
      .filter(({ line, i }) => line !== "" && i !== writing && !TERM.test(line));
    const named = wrong.slice(0, SHOWN).map(({ line, i }) => `line ${i + 1} (“${line.slice(0, 30)}”)`);
    this.#say(wrong.length > 0 ? `Not used, without “=” between term and translation: ${named.join(", ")}` : "");
  }

  #say(text) {
    this.#parts["terms-said"].textContent = text;
    this.#parts["terms-said"].hidden = text === "";
  }

  async #list(chosen = this.#parts.stored.value) {
    await this.#trying(async () => {
      const found = await glossaries();
      const options = found.map(({ id, name }) => element("option", { value: id }, name));
      this.#parts.stored.replaceChildren(element("option", { value: "" }, "none"), ...options);
      this.#parts.stored.value = chosen;
      this.#parts["stored-field"].hidden = found.length === 0;
    });
  }

  async #upload() {
    const [file] = this.#parts["terms-file"].files;
    this.#parts["terms-file"].value = "";
    if (!file) return;
    if (!this.#source) {
      this.#say("Choose the language of the text first, then the file of terms.");
      return;
    }
    await this.#trying(async () => {
      const { id } = await uploadGlossary(file, this.#source, this.#target);
      await this.#list(id);
      this.#changed();
    });
  }

  /** @param {() => Promise<void>} work */
  async #trying(work) {
    try {
      await work();
    } catch (error) {
      expected(error);
      this.#say(error.message);
    }
  }
}
