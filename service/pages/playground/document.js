/** Translates a file, and shows the progress. */

import { Problem, download, expected, forget, statusOf, upload } from "./api.js";
import { announce, element } from "./dom.js";

const FIRST_LOOK_MS = 200;
const LOOKS_MS = 1000;

export class DocumentTask {
  #parts;
  #options;
  #heard;
  #controller = new AbortController();
  #address = "";
  /** @type {File | undefined} */
  #file;

  /**
   * @param {Record<string, any>} parts
   * @param {() => Record<string, unknown>} options  What is asked of a file, as of a text.
   * @param {(language: string) => void} heard  The language of a file is known.
   */
  constructor(parts, options, heard) {
    this.#parts = parts;
    this.#options = options;
    this.#heard = heard;
    const { pick, file, stop, dropzone, missing, columns } = parts;
    pick.addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      const [chosen] = file.files;
      file.value = "";
      if (chosen) this.#choose(chosen);
    });
    for (const option of [missing, columns]) option.addEventListener("change", () => this.#translate(this.#file));
    stop.addEventListener("click", () => this.#end());
    dropzone.addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    });
    dropzone.addEventListener("drop", (event) => {
      const [dropped] = event.dataTransfer.files;
      if (!dropped) return;
      event.preventDefault();
      this.#choose(dropped);
    });
  }

  /** Shows the options of this kind of file, and translates it. @param {File} file */
  #choose(file) {
    this.#file = file;
    this.#parts.missing.checked = false;
    this.#parts.columns.value = "";
    for (const field of [this.#parts["missing-field"], this.#parts["columns-field"]]) {
      field.hidden = !field.dataset.endings.split(",").some((ending) => file.name.toLowerCase().endsWith(ending));
    }
    this.#translate(file);
  }

  /** Returns the options that only some kinds of files have, as far as they are chosen. */
  #own() {
    const columns = this.#parts.columns.value.split(",").map((name) => name.trim()).filter((name) => name !== "");
    return { ...(this.#parts.missing.checked && { only_missing: true }), ...(columns.length > 0 && { columns }) };
  }

  /** @param {File} file */
  async #translate(file) {
    this.#end();
    const { signal } = this.#controller;
    const { progress } = this.#parts;
    this.#parts.document.hidden = false;
    progress.hidden = false;
    progress.removeAttribute("value");
    this.#say(`${file.name}: sending`);
    try {
      let card = await upload(file, { ...this.#options(), ...this.#own() }, signal);
      this.#heard(card.source);
      this.#address = `translate/document/${card.id}?key=${encodeURIComponent(card.key)}`;
      for (let wait = FIRST_LOOK_MS; card.status !== "done"; wait = Math.min(2 * wait, LOOKS_MS)) {
        if (card.status === "error") throw new Problem(422, card.error, [], 1);
        this.#follow(file, card);
        await new Promise((resolve) => setTimeout(resolve, wait));
        if (signal.aborted) return;
        card = await statusOf(this.#address, signal);
      }
      const content = await download(this.#address.replace("?", "/result?"), signal);
      this.#offer(card.file_name, content);
    } catch (error) {
      if (signal.aborted) return;
      expected(error);
      progress.hidden = true;
      this.#say(`${file.name}: ${error.message}`);
      announce(error.message);
    }
  }

  #follow(file, { status, progress, seconds_remaining: seconds }) {
    const left = seconds === undefined ? "" : `, ${Math.ceil(seconds)} s left`;
    this.#parts.progress.value = progress;
    this.#say(status === "queued" ? `${file.name}: waiting` : `${file.name}: ${Math.round(100 * progress)} %${left}`);
  }

  /** @param {string} name @param {Blob} content */
  #offer(name, content) {
    this.#parts.progress.hidden = true;
    const link = element("a", { href: URL.createObjectURL(content), download: name }, name);
    this.#parts.said.replaceChildren("Translated: ", link);
    announce(`Translated: ${name}`);
  }

  #say(text) {
    this.#parts.said.replaceChildren(text);
  }

  /** Stops the translation, and deletes the document, on the server too. */
  #end() {
    this.#controller.abort();
    this.#controller = new AbortController();
    this.#parts.document.hidden = true;
    const link = this.#parts.said.querySelector("a");
    if (link) URL.revokeObjectURL(link.href);
    if (this.#address) forget(this.#address);
    this.#address = "";
  }
}
