/** The page's first task: a text, its translation as it is written, and which words became which. */

import { choices, choiceOf, nameOf, opposite, segments } from "./directions.js";
import { copies, element } from "./dom.js";
import { TO_TRANSLATE } from "./examples.js";
import { Task, wordsUnder } from "./task.js";
import { WordLine } from "./wordline.js";
import { WordLinks } from "./wordlinks.js";

const OTHER_WORDINGS = 2;

export class TranslateView {
  #task;
  #parts;
  #choices;
  #choice;
  #result;
  #links;

  /**
   * @param {HTMLElement} root
   * @param {import("./types.js").Model[]} models
   * @param {() => void} changed  The view has a new state to keep.
   */
  constructor(root, models, changed) {
    this.#choices = choices(models);
    this.#choice = this.#choices[0];
    const box = /** @type {HTMLElement} */ (root.querySelector("[data-part=translation]"));
    this.#task = new Task(root, box, {
      path: "translate",
      body: (text) => this.#body(text),
      optional: "alignment",
      show: (answer) => this.#show(answer.translations[0]),
      clear: () => this.#clear(),
      pointed: (word, spoken) => this.#links.point("source", word, spoken),
      lit: (cell) => this.#light(cell),
      changed,
    });
    this.#parts = this.#task.parts;
    this.#result = new WordLine(box);
    this.#links = new WordLinks({ source: this.#task.editor.words, target: this.#result });
    this.#parts.swap.addEventListener("click", () => this.#swap());
    this.#parts.direction.addEventListener("change", () => this.#turn(this.#choices[this.#parts.direction.value]));
    copies(this.#parts.copy, () => this.#result.text);
  }

  /** @param {URLSearchParams} state */
  restore(state) {
    this.#use(choiceOf(this.#choices, state), state.get("attention") ?? "");
    this.#task.editor.text = state.get("text") ?? "";
    this.#task.ask({ now: true });
  }

  get text() {
    return this.#task.editor.text;
  }

  get state() {
    const { model, source, target } = this.#choice;
    const direction = this.#choices.length > 1 ? { source, target, model: model.name } : {};
    return { ...direction, attention: this.#task.attention.state, text: this.#task.editor.text };
  }

  #use(choice, attention = "") {
    const { model, source, target } = (this.#choice = choice);
    const { direction, swap, translation, alternatives } = this.#parts;
    this.#parts["source-name"].textContent = nameOf(source);
    this.#parts["target-name"].textContent = nameOf(target);
    direction.replaceChildren(...this.#choices.map(({ name }, i) => element("option", { value: String(i) }, name)));
    direction.value = String(this.#choices.indexOf(choice));
    swap.hidden = opposite(this.#choices, choice) === undefined;
    // One language and its opposite need no list: they have the button that swaps them.
    direction.hidden = this.#choices.length < (swap.hidden ? 2 : 3);
    this.#task.editor.language = source;
    translation.lang = alternatives.lang = target;
    this.#task.use(model, TO_TRANSLATE[source] ?? [], source, attention);
  }

  #turn(choice) {
    this.#use(choice);
    this.#task.ask({ now: true });
  }

  #swap() {
    if (this.#result.text) this.#task.editor.text = this.#result.text;
    this.#turn(opposite(this.#choices, this.#choice));
  }

  #body(text) {
    const { model, source, target } = this.#choice;
    const alternatives = Math.min(OTHER_WORDINGS, (model.decoding?.beam_size ?? 1) - 1);
    return { text, source, target, model: model.name, alternatives, alignment: true };
  }

  #clear() {
    this.#parts.copy.hidden = this.#parts.other.hidden = true;
    this.#result.show("", []);
  }

  /** @param {import("./types.js").Translation} translation */
  #show({ text, alternatives = [], alignment, attention }) {
    const words = alignment?.words;
    this.#parts.copy.hidden = false;
    this.#task.editor.show(words?.source ?? []);
    this.#result.show(text, words?.target ?? []);
    this.#links.link(words?.pairs ?? "");
    this.#parts.translation.setAttribute("aria-label", words ? "Translation; arrow keys walk its words" : "Translation");
    this.#parts.alternatives.replaceChildren(...alternatives.map((other) => wording(other.text, text, this.#choice.target)));
    this.#parts.other.hidden = alternatives.length === 0;
    return { attention, summary: `Translation: ${text}` };
  }

  /** @param {import("./attention.js").Cell | null} cell */
  #light(cell) {
    const lines = { source: this.#task.editor.words, target: this.#result };
    const lit = { source: [], target: [] };
    if (cell !== null) {
      lit[cell.rowSide].push(...wordsUnder(lines[cell.rowSide], cell.row));
      lit[cell.columnSide].push(...wordsUnder(lines[cell.columnSide], cell.column));
    }
    this.#links.light(lit.source, lit.target);
  }
}

/** Another translation; the words that the first one does not have stand out. */
function wording(text, first, language) {
  const known = new Set(segments(first, language).map(({ segment }) => segment.toLowerCase()));
  const isKnown = ({ segment, isWordLike }) => !isWordLike || known.has(segment.toLowerCase());
  const words = segments(text, language).map((word) => (isKnown(word) ? word.segment : element("em", {}, word.segment)));
  return element("li", {}, ...words);
}
