/** The common part of both tasks: a text that is written, the answer that follows it, and failures. */

import { AttentionPanel } from "./attention.js";
import { CurlPanel } from "./curl.js";
import { announce, parts } from "./dom.js";
import { Editor } from "./editor.js";
import { showExamples } from "./examples.js";
import { expectation } from "./expectation.js";
import { Notice } from "./notice.js";
import { Question } from "./question.js";
import { unitsOf } from "./spans.js";
import { showTiming } from "./timing.js";

const ANNOUNCE_AFTER_MS = 1000;

/** Most characters of a text, and from which part of them on the limit is shown. */
const MAX_CHARACTERS = Number(document.querySelector("main").dataset.maxCharacters);
const NEAR_LIMIT = 0.8;

/**
 * @typedef {object} Plan  The difference between the tasks.
 * @property {string} path
 * @property {(text: string) => Record<string, unknown>} body
 * @property {string[]} optional  Fields of the request without which the answer can be shown too.
 * @property {(answer: any) => {attention?: import("./types.js").Attention, summary: string}} show
 *   Shows an answer, and returns its attention and a summary.
 * @property {(text: string) => void} [arriving]  Shows the beginning of a long answer.
 * @property {(text: string) => void} [written]  The visitor is writing.
 * @property {() => void} clear  Removes the answer.
 * @property {() => void} [failed]  The answer that is shown is not that of the text.
 * @property {(word: number | null, spoken: boolean) => void} pointed  A word of the text is pointed at.
 * @property {(cell: import("./attention.js").Cell | null) => void} lit  A cell of an attention matrix is pointed at.
 * @property {() => void} changed  The state has changed.
 */

export class Task {
  #plan;
  #result;
  #notice;
  #question;
  #curl;
  #examples = [];

  /** Whether the last request asked for attention. */
  #wantedAttention = false;

  /**
   * @param {HTMLElement} root
   * @param {HTMLElement} result  The part of the page that is stale when a request fails.
   * @param {Plan} plan
   */
  constructor(root, result, plan) {
    this.#plan = plan;
    this.#result = result;
    this.parts = parts(root);
    this.#question = new Question(plan.path, {
      answered: (answer, timing, refused) => this.#show(answer, timing, refused),
      failed: (error) => this.#fail(error),
      waiting: (seconds) => this.#notice.busy(seconds),
      arriving: (text) => this.#arrive(text),
    });
    this.#notice = new Notice(this.parts.notice, () => this.#question.retry());
    this.editor = new Editor(this.parts.editor, { changed: () => this.#follow(), pointed: plan.pointed });
    this.attention = new AttentionPanel(this.parts.attention, {
      wanted: () => this.ask({ now: true }),
      pointed: plan.lit,
      changed: () => {
        this.#showCommand();
        plan.changed();
      },
    });
    this.#curl = new CurlPanel(this.parts.curl);
    this.parts.clear.addEventListener("click", () => this.write(""));
  }

  /** @param {import("./types.js").Model | null} model @param {string[]} examples @param {string} language */
  use(model, examples, language, attention = "") {
    this.#examples = examples;
    showExamples(this.parts.examples, examples, language, (text) => this.write(text));
    this.tell(model, "", attention);
  }

  /**
   * Shows which model answers.
   *
   * @param {import("./types.js").Model | null} model  Null if several answer, or if it is not known.
   * @param {string} [others]  The names of several models.
   * @param {string} [attention]
   * @param {import("./types.js").Model[]} [models]  All models that answer.
   */
  tell(model, others = "", attention = "", models = model ? [model] : []) {
    this.attention.use(model, attention);
    const where = model?.provider === "cuda" ? "a GPU" : "the CPU";
    const who = model ? `${model.name} in ${model.precision} on ${where}. ` : others;
    this.parts.about.textContent = `${who}Texts go to this service and nowhere else.`;
    this.parts.expectation.textContent = expectation(models);
  }

  /** @param {string} text */
  write(text) {
    this.editor.text = text;
    this.editor.focus();
    this.ask({ now: true });
  }

  /** @param {{now?: boolean}} [options] */
  ask(options) {
    const { text } = this.editor;
    this.parts.count.textContent = counted(text);
    this.parts.count.classList.toggle("over", [...text].length > MAX_CHARACTERS);
    this.parts.clear.hidden = text === "";
    this.#showCommand();
    if (text.trim() === "") {
      this.#question.cancel();
      this.#clear();
    } else {
      this.#result.classList.add("pending");
      const body = this.#body(text);
      this.#wantedAttention = "attention" in body;
      this.#question.ask(body, [...this.#plan.optional, "attention"], options);
    }
  }

  #follow() {
    this.ask();
    if (this.editor.text.trim() !== "") this.#plan.written?.(this.editor.text);
  }

  /** Makes room for the beginning of an answer, which still belongs to the text before. */
  preview() {
    this.#result.hidden = false;
    this.parts.examples.hidden = true;
  }

  #body(text) {
    return { ...this.#plan.body(text), ...this.attention.request(text) };
  }

  #showCommand() {
    const { text } = this.editor;
    this.#curl.show(this.#plan.path, this.#body(text.trim() === "" ? (this.#examples[0] ?? "") : text));
  }

  #clear() {
    this.#settle(false);
    this.#result.hidden = true;
    this.parts.examples.hidden = false;
    this.editor.show([]);
    this.attention.show(undefined);
    showTiming(this.parts.timing, null);
    this.#plan.clear();
    this.#plan.changed();
  }

  #show(answer, timing, refused) {
    this.#settle(false);
    this.#result.hidden = false;
    this.parts.examples.hidden = true;
    const { attention, summary } = this.#plan.show(answer);
    this.attention.show(attention, refused.get("attention"));
    showTiming(this.parts.timing, timing);
    announce(summary, ANNOUNCE_AFTER_MS);
    this.#plan.changed();
    // Before the answer it was not known which model's attention can be shown.
    if (!this.#wantedAttention && "attention" in this.attention.request(this.editor.text)) this.ask({ now: true });
  }

  #arrive(text) {
    this.#settle(false);
    this.#result.hidden = false;
    this.parts.examples.hidden = true;
    this.#plan.arriving?.(text);
  }

  #fail(error) {
    this.#settle(!this.#result.hidden);
    this.#plan.failed?.();
    this.#notice.show(error);
  }

  /** @param {boolean} stale  Whether the shown answer belongs to an earlier text. */
  #settle(stale) {
    this.#notice.hide();
    this.parts.stale.hidden = !stale;
    this.#result.classList.toggle("stale", stale);
    this.#result.classList.remove("pending");
  }
}

/**
 * Returns the words that a token covers.
 *
 * @param {import("./wordline.js").WordLine} line
 * @param {import("./types.js").Token} token
 */
export function wordsUnder(line, { span }) {
  const [start, end] = span.map(unitsOf(line.text));
  return line.within(start, end);
}

function counted(text) {
  const count = [...text].length;
  const limit = count > NEAR_LIMIT * MAX_CHARACTERS ? ` of ${MAX_CHARACTERS.toLocaleString("en")}` : "";
  return count === 0 ? "" : `${count.toLocaleString("en")}${limit} ${count === 1 ? "character" : "characters"}`;
}
