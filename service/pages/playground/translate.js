/** The first task of the page: a text, its translation while it is written, and which words became which. */

import { Choices } from "./choices.js";
import { Corrections } from "./corrections.js";
import { AUTO, Directions, nameOf } from "./directions.js";
import { DocumentTask } from "./document.js";
import { copies } from "./dom.js";
import { TO_TRANSLATE } from "./examples.js";
import { GlossaryField } from "./glossary.js";
import { named, offer } from "./lists.js";
import { Live } from "./live.js";
import { checked, doubts, wording } from "./remarks.js";
import { Task, wordsUnder } from "./task.js";
import { WordLine } from "./wordline.js";
import { WordLinks } from "./wordlinks.js";

const OTHER_WORDINGS = 2;

export class TranslateView {
  #task;
  #parts;
  #directions;
  #choice;
  #result;
  #links;
  #glossary;
  #corrections;
  #choices;
  #live = new Live((text) => this.#preview(text));
  /** The chosen beginning of the translation, and what it is a translation of. */
  #begun = { of: "", prefix: "" };
  /** The detected source of the last answer, if it was detected. */
  #detected = "";

  /**
   * @param {HTMLElement} root
   * @param {import("./types.js").Model[]} models
   * @param {() => void} changed  Called when the state of the view changes.
   */
  constructor(root, models, changed) {
    this.#directions = new Directions(models);
    this.#choice = this.#directions.nearest();
    const box = /** @type {HTMLElement} */ (root.querySelector("[data-part=translation]"));
    this.#task = new Task(root, box, {
      path: "translate",
      body: (text) => this.#body(text),
      optional: ["alignment", "confidence"],
      show: (answer) => this.#show(answer, answer.translations[0]),
      arriving: (text) => this.#arrive(text),
      written: (text) => this.#live.ask(text, this.#asked()),
      clear: () => {
        this.#clear();
        this.#forget();
      },
      failed: () => this.#forget(),
      pointed: (word, spoken) => this.#links.point("source", word, spoken),
      lit: (cell) => this.#light(cell),
      changed,
    });
    this.#parts = this.#task.parts;
    this.#result = new WordLine(box);
    this.#choices = new Choices(this.#parts.choices, box, (prefix) => this.#begin(prefix));
    this.#links = new WordLinks({ source: this.#task.editor.words, target: this.#result }, (word, byKeyboard) => {
      const { text } = this.#task.editor;
      this.#choices.offer({ text, ...this.#asked() }, this.#result.before(word), this.#choice.target, byKeyboard);
    });
    this.#parts.swap.addEventListener("click", () => this.#swap());
    for (const name of ["source", "target", "model"]) {
      this.#parts[name].addEventListener("change", () => this.#choose(name, this.#parts[name].value));
    }
    this.#glossary = new GlossaryField(this.#parts, () => this.#task.ask());
    this.#corrections = new Corrections(this.#parts, () => this.#task.ask({ now: true }));
    this.#parts.check.addEventListener("change", () => this.#task.ask({ now: true }));
    new DocumentTask(this.#parts, () => this.#asked(), (language) => this.#choice.source === AUTO && this.#detect(language));
    copies(this.#parts.copy, () => this.#result.text);
  }

  /** @param {URLSearchParams} state */
  restore(state) {
    const [source, target, model] = ["source", "target", "model"].map((name) => state.get(name));
    this.#use(this.#directions.nearest({ source, target, model }), state.get("attention") ?? "");
    this.#glossary.text = state.get("terms") ?? "";
    this.#task.editor.text = state.get("text") ?? "";
    this.#task.ask({ now: true });
  }

  get text() {
    return this.#task.editor.text;
  }

  get state() {
    const { model, source, target } = this.#choice;
    const named = this.#directions.models(source, target).length > 1 ? model.name : "";
    const { attention, editor } = this.#task;
    return { source, target, model: named, attention: attention.state, terms: this.#glossary.text, text: editor.text };
  }

  #use(choice, attention = "") {
    const { model, source, target } = (this.#choice = choice);
    const { translation, alternatives } = this.#parts;
    const models = this.#directions.models(source, target);
    const { many } = this.#directions;
    // One direction and its opposite need no lists: the swap button is enough.
    for (const [side, code] of Object.entries({ source, target })) {
      this.#parts[`${side}-name`].textContent = many ? { source: "Text", target: "Translation" }[side] : nameOf(code);
      this.#parts[`${side}-name`].className = many ? "sr-only" : "";
      this.#parts[side].hidden = !many;
    }
    offer(this.#parts.source, this.#directions.sources.map(named), source, [[AUTO, "Detect the language"]]);
    offer(this.#parts.target, this.#directions.targets(source).map(named), target);
    offer(this.#parts.model, models.map(({ name }) => [name, name]), model?.name);
    this.#parts.model.hidden = models.length < 2;
    this.#detect("");
    translation.lang = alternatives.lang = target;
    const any = Object.values(TO_TRANSLATE).map(([first]) => first);
    this.#task.use(model, source === AUTO ? any : (TO_TRANSLATE[source] ?? []), this.#source, attention);
  }

  /** The language of the text, as far as it is known. */
  get #source() {
    return this.#choice.source === AUTO ? this.#detected : this.#choice.source;
  }

  /** @param {string} language */
  #detect(language) {
    this.#detected = language;
    const { source } = this.#parts;
    source.options[0].textContent = language ? `Detected: ${nameOf(language)}` : "Detect the language";
    this.#parts.swap.hidden = !this.#directions.has({ source: this.#choice.target, target: this.#source });
    this.#task.editor.language = this.#source;
    this.#glossary.between(this.#source, this.#choice.target);
    this.#corrections.between(this.#source, this.#choice.target);
  }

  /** The shown text is not the one whose language was detected. */
  #forget() {
    if (this.#choice.source === AUTO) this.#detect("");
  }

  #turn(choice) {
    this.#use(choice);
    this.#task.ask({ now: true });
  }

  /** @param {"source" | "target" | "model"} part  The part that the visitor has changed. */
  #choose(part, value) {
    const { target, model } = this.#choice;
    const source = this.#source;
    const wish = { source: this.#choice.source, target, model: model?.name, [part]: value };
    // After a change of the source, keep the target, or take the former source as the target.
    const other = { source: wish.source, target: source };
    if (!this.#directions.has(wish) && this.#directions.has(other)) wish.target = source;
    this.#turn(this.#directions.nearest(wish));
  }

  #swap() {
    if (this.#result.text) this.#task.editor.text = this.#result.text;
    this.#turn(this.#directions.nearest({ source: this.#choice.target, target: this.#source }));
  }

  #body(text) {
    const { model } = this.#choice;
    const asked = { text, ...this.#asked() };
    const isBegun = JSON.stringify(asked) === this.#begun.of;
    const begun = isBegun ? { target_prefix: this.#begun.prefix } : this.#corrections.asked;
    const shown = { alignment: true, confidence: true, ...(this.#parts.check.checked && { checks: true }) };
    const body = { ...asked, ...begun, ...shown };
    const alternatives = Math.min(OTHER_WORDINGS, this.#directions.beam(model) - 1);
    return alternatives > 0 ? { ...body, alternatives } : body;
  }

  /** @param {string} prefix  The beginning of the translation that the visitor has chosen. */
  #begin(prefix) {
    this.#begun = { of: JSON.stringify({ text: this.#task.editor.text, ...this.#asked() }), prefix };
    this.#task.ask({ now: true });
  }

  /** Returns the options for every text and file. */
  #asked() {
    const { model, source, target } = this.#choice;
    return { source, target, ...(model && { model: model.name }), ...this.#glossary.asked };
  }

  /** @param {string} text  The translation of a text that is being written. */
  #preview(text) {
    this.#task.preview();
    this.#choices.close();
    this.#corrections.clear();
    this.#result.show(text, []);
  }

  /** @param {string} text */
  #arrive(text) {
    this.#clear();
    this.#result.show(text, []);
  }

  #clear() {
    this.#parts.copy.hidden = this.#parts.other.hidden = this.#parts.checks.hidden = true;
    this.#choices.close();
    this.#corrections.clear();
    this.#live.forget();
    this.#result.show("", []);
  }

  /** @param {import("./types.js").Answer} answer @param {import("./types.js").Translation} translation */
  #show(answer, { text, alternatives = [], alignment, attention, checks, detected, memory, model, pivot, words: sureness = [] }) {
    this.#live.forget();
    if (this.#choice.source === AUTO) this.#detect(detected?.language ?? "");
    if (this.#choice.source === AUTO && detected?.language === this.#choice.target) {
      // The text is in the target's language already: translate it into another one.
      this.#turn({ ...this.#choice, target: this.#directions.nearest({ source: detected.language }).target });
    }
    this.#parts.checks.hidden = checks === undefined;
    this.#parts.checks.replaceChildren(...checked(checks ?? []));
    const through = pivot ?? answer.pivot;
    const others = through ? `${through.models.join(" and ")}, through ${nameOf(through.language)}. ` : "";
    const both = through?.models.map((name) => this.#directions.named(name)).filter((found) => found !== null);
    this.#task.tell(this.#directions.named(model ?? answer.model), others, "", both);
    const words = alignment?.words;
    this.#parts.copy.hidden = false;
    this.#corrections.offer(this.#task.editor.text, text, memory);
    this.#choices.close();
    this.#task.editor.show(words?.source ?? []);
    const target = words?.target ?? sureness.map((word) => ({ token: word.text, span: word.span }));
    this.#result.show(text, target);
    this.#result.doubt(doubts(target, sureness));
    this.#links.link(words?.pairs ?? "");
    this.#parts.translation.setAttribute("aria-label", words ? "Translation; arrow keys walk its words, Enter offers others" : "Translation");
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
