/** The second task of the page: a text, its label, and how much its label loses without each token. */

import { onScheme } from "./colors.js";
import { announce, element } from "./dom.js";
import { evidenceOf, fullColorAt, poles, shades, showScale, signed, strongest, summed, words } from "./evidence.js";
import { TO_CLASSIFY } from "./examples.js";
import { Task, wordsUnder } from "./task.js";

const HINT = "Point at a word to see what the label loses without it.";

export class ClassifyView {
  #task;
  #parts;
  #models;
  #model;
  /** @type {import("./types.js").Prediction | null} */
  #prediction = null;
  /** The label whose evidence is shown, if there are more than two labels. */
  #label = "";
  /** @type {number[]}  The evidence of each token. */
  #values = [];

  /**
   * @param {HTMLElement} root
   * @param {import("./types.js").Model[]} models
   * @param {() => void} changed  Called when the state of the view changes.
   */
  constructor(root, models, changed) {
    this.#models = models;
    this.#model = models[0];
    const box = /** @type {HTMLElement} */ (root.querySelector("[data-part=prediction]"));
    this.#task = new Task(root, box, {
      path: "classify",
      body: (text) => ({ text, model: this.#model.name, evidence: true }),
      optional: ["evidence"],
      show: (answer) => this.#show(answer.predictions[0]),
      clear: () => this.#clear(),
      pointed: (token, spoken) => this.#point(token, spoken),
      lit: (cell) => this.#light(cell),
      changed,
    });
    this.#parts = this.#task.parts;
    this.#parts.model.replaceChildren(...models.map(({ name }) => element("option", {}, name)));
    this.#parts.model.hidden = models.length < 2;
    this.#parts.model.addEventListener("change", () => {
      this.#use(this.#parts.model.value);
      this.#task.ask({ now: true });
    });
    onScheme(() => this.#draw());
  }

  /** @param {URLSearchParams} state */
  restore(state) {
    this.#use(state.get("model"), state.get("attention") ?? "");
    this.#task.editor.text = state.get("text") ?? "";
    this.#task.ask({ now: true });
  }

  get text() {
    return this.#task.editor.text;
  }

  get state() {
    const model = this.#models.length > 1 ? this.#model.name : "";
    return { model, attention: this.#task.attention.state, text: this.#task.editor.text };
  }

  #use(name, attention = "") {
    this.#model = this.#models.find((model) => model.name === name) ?? this.#models[0];
    this.#parts.model.value = this.#model.name;
    this.#task.use(this.#model, TO_CLASSIFY, "en", attention);
  }

  #clear() {
    this.#prediction = null;
    this.#values = [];
    this.#parts.evidence.hidden = true;
  }

  /** @param {import("./types.js").Prediction} prediction */
  #show(prediction) {
    this.#prediction = prediction;
    this.#task.editor.show(prediction.evidence?.tokens ?? []);
    this.#draw();
    const { label, scores, attention } = prediction;
    return { attention, summary: `${label}, ${percent(scores[label])}` };
  }

  /** Shows the evidence for the chosen label, in the colours of the scheme. */
  #draw() {
    if (this.#prediction === null) return;
    const { evidence, scores } = this.#prediction;
    const ends = this.#ends;
    const bars = Object.entries(scores).map(([label, score]) => this.#bar(label, score, label === ends.for));
    this.#parts.prediction.replaceChildren(element("ul", { className: "scores" }, ...bars));
    this.#parts.evidence.hidden = evidence === undefined;
    if (evidence) this.#drawEvidence(evidence, ends);
  }

  /** @param {import("./types.js").Evidence} evidence @param {import("./evidence.js").Poles} ends */
  #drawEvidence(evidence, ends) {
    const line = this.#task.editor.words;
    const values = evidence.tokens.map(({ contributions }) => evidenceOf(contributions, ends));
    this.#values = summed(values, line.groups);
    const full = fullColorAt(this.#values);
    line.paint(shades(this.#values));
    showScale(this.#parts.scale, ends, full);
    this.#point(null, false);
    const found = words(evidence.tokens, values, line.text);
    const odds = evidenceOf(evidence.logits, ends);
    this.#parts.prediction.append(
      element(
        "div",
        { className: "strongest" },
        strongest(`For ${ends.for}`, found.filter(({ value }) => value > 0), full),
        strongest(`For ${ends.against}`, found.filter(({ value }) => value < 0), full),
      ),
      element("p", { className: "quiet" }, `The logarithm of the odds is ${signed(odds)} for ${ends.for}; each token has what they lose without it.`),
    );
  }

  get #ends() {
    const { labels } = this.#model;
    return poles(labels, labels.includes(this.#label) ? this.#label : this.#prediction.label);
  }

  #bar(label, score, isFor) {
    const bar = element("span", { className: `score-bar ${isFor ? "for" : "against"}` });
    bar.style.width = `${100 * score}%`;
    const track = element("span", { className: "score-track", "aria-hidden": "true" }, bar);
    const name = this.#model.labels.length > 2 ? this.#chooser(label, isFor) : element("span", {}, label);
    return element("li", {}, name, element("span", { className: "number" }, percent(score)), track);
  }

  /** Returns a button that shows the evidence for one of more than two labels. */
  #chooser(label, isFor) {
    const choose = () => {
      this.#label = label;
      this.#draw();
    };
    return element("button", { className: "plain", "aria-pressed": String(isFor), title: `Evidence for ${label}`, onclick: choose }, label);
  }

  #point(token, spoken) {
    const line = this.#task.editor.words;
    const value = token === null ? undefined : this.#values[token];
    line.mark("pointed", value === undefined ? [] : [token]);
    if (value === undefined) {
      this.#parts.readout.textContent = HINT;
      return;
    }
    const { tokens } = this.#prediction.evidence;
    const each = Object.entries(tokens[token].contributions).map(([label, part]) => `${label} ${signed(part)}`);
    this.#parts.readout.replaceChildren(element("strong", {}, line.wordOf(token)), ` ${each.join(", ")}`);
    if (spoken) announce(this.#parts.readout.textContent);
  }

  /** @param {import("./attention.js").Cell | null} cell */
  #light(cell) {
    const line = this.#task.editor.words;
    line.mark("lit", cell === null ? [] : [...wordsUnder(line, cell.row), ...wordsUnder(line, cell.column)]);
  }
}

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}
