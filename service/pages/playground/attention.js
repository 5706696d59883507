/** The panel that shows attention: its controls, and the request for the matrices that they choose. */

import { css, isDark, onScheme, sequential } from "./colors.js";
import { element, fill, parts } from "./dom.js";
import { HeatMap, largestOf } from "./heatmap.js";
import { Heads } from "./heads.js";
import { label } from "./spans.js";
import { tableOf } from "./table.js";
import { Matrices } from "./tensors.js";

/**
 * @typedef {import("./types.js").Kind} Kind
 * @typedef {import("./types.js").Model} Model
 * @typedef {import("./types.js").Token} Token
 */

/**
 * @typedef {object} Cell  A cell of a matrix, and the texts that its tokens belong to.
 * @property {Token} row
 * @property {Token} column
 * @property {"source" | "target"} rowSide
 * @property {"source" | "target"} columnSide
 */

/** Texts of up to this many characters get all matrices at once; longer ones get one kind at a time, or one layer. */
const ALL_KINDS = 160;
const ALL_LAYERS = 600;

/** @type {Record<Kind, {name: string, explained: string}>} */
const KINDS = {
  cross: {
    name: "Cross: translation to text",
    explained: "Each row is a token of the translation; its colours tell which tokens of the text the decoder read as it wrote it.",
  },
  encoder: {
    name: "Encoder: text to itself",
    explained: "Each row is a token of the text; its colours tell which tokens of the text it took in.",
  },
  decoder: {
    name: "Decoder: translation to itself",
    explained: "Each row is a token of the translation; its colours tell which tokens before it the decoder looked back at.",
  },
};

export class AttentionPanel {
  #panel;
  #parts;
  #listener;
  #map;
  #heads;
  /** @type {Matrices | null} */
  #matrices = null;
  /** @type {Model | null} */
  #model = null;

  /**
   * @param {HTMLDetailsElement} panel
   * @param {object} listener
   * @param {() => void} listener.wanted  Called if the panel needs matrices that the last answer does not have.
   * @param {(cell: Cell | null) => void} listener.pointed
   * @param {() => void} listener.changed
   */
  constructor(panel, listener) {
    fill(panel, "attention-template");
    this.#panel = panel;
    this.#parts = parts(panel);
    this.#listener = listener;
    this.#map = new HeatMap(this.#parts.map, (row, column) => this.#point(row, column));
    this.#heads = new Heads(this.#parts.heads, (layer, head) => {
      [this.#parts.layer.value, this.#parts.head.value] = [String(layer), String(head)];
      this.#show();
    });
    panel.addEventListener("toggle", () => this.#show());
    this.#parts.kind.addEventListener("change", () => {
      this.#offer();
      this.#show();
    });
    for (const name of ["layer", "head", "sentence"]) this.#parts[name].addEventListener("change", () => this.#show());
    this.#parts.table.addEventListener("toggle", () => this.#tabulate());
    onScheme(() => this.#scale());
  }

  /**
   * @param {Model | null} model
   * @param {string} [state]  A former value of `state`: kind, layer and head of an open panel.
   */
  use(model, state = "") {
    if (model !== this.#model) this.#suit(model);
    if (state === "" || this.#panel.hidden) return;
    const [kind, layer, head] = state.split(".");
    choose(this.#parts.kind, kind);
    this.#offer();
    choose(this.#parts.layer, layer);
    choose(this.#parts.head, head);
    this.#panel.open = true;
  }

  get state() {
    return this.#panel.open ? [this.#kind, this.#layer, this.#head].join(".") : "";
  }

  /** Returns the fields to send with a text; none while the panel is closed. */
  request(text) {
    if (!this.#panel.open || this.#panel.hidden) return {};
    const kinds = text.length <= ALL_KINDS ? [...this.#parts.kind.options].map((option) => option.value) : [this.#kind];
    if (!kinds[0]) return {}; // which model answers is not known yet
    const layers = text.length <= ALL_LAYERS ? "all" : [this.#layer];
    return { attention: { kinds, layers, heads: "all", encoding: "base64" } };
  }

  /**
   * @param {import("./types.js").Attention | undefined} attention
   * @param {string} [refused]  Why there is no attention.
   */
  show(attention, refused) {
    this.#matrices = attention ? new Matrices(attention) : null;
    this.#parts.empty.textContent = refused ?? "Write a text, and it is shown here what was attended to.";
    this.#parts.empty.hidden = this.#matrices !== null;
    this.#parts.views.hidden = this.#matrices === null;
    if (this.#matrices) this.#draw();
  }

  #suit(model) {
    this.#model = model;
    this.#panel.hidden = model?.layers === undefined;
    if (this.#panel.hidden) return;
    const kinds = /** @type {Kind[]} */ (Object.keys(KINDS)).filter((kind) => model.attention[kind]);
    options(this.#parts.kind, kinds.map((kind) => [kind, KINDS[kind].name]));
    options(this.#parts.head, [["mean", "Mean"], ...range(model.heads).map((head) => [head, `Head ${head}`])]);
    this.#offer();
  }

  get #kind() {
    return /** @type {Kind} */ (this.#parts.kind.value);
  }

  get #layer() {
    return Number(this.#parts.layer.value);
  }

  get #head() {
    const { value } = this.#parts.head;
    return value === "mean" ? value : Number(value);
  }

  get #name() {
    const head = this.#head === "mean" ? "mean of the heads" : `head ${this.#head}`;
    return `${KINDS[this.#kind].name}, layer ${this.#layer}, ${head}`;
  }

  #weights(layer = this.#layer, head = this.#head) {
    return this.#matrices?.weights(this.#kind, layer, head, Number(this.#parts.sentence.value) || 0) ?? null;
  }

  /** Lists the layers of the chosen kind, and chooses the last one: alignments and labels come from it. */
  #offer() {
    const count = this.#model.attention[this.#kind];
    options(this.#parts.layer, range(count).map((layer) => [layer, `Layer ${layer}`]));
    this.#parts.layer.value = String(count - 1);
  }

  #show() {
    this.#listener.changed();
    if (!this.#panel.open) return;
    if (this.#weights() === null) this.#listener.wanted();
    else this.#draw();
  }

  #draw() {
    const { sentence } = this.#parts;
    const sentences = this.#matrices.sentences(this.#kind);
    if (sentence.options.length !== sentences.length) {
      const chosen = sentence.value;
      options(sentence, sentences.map((_, i) => [i, `${i + 1} of ${sentences.length}`]));
      choose(sentence, chosen);
    }
    this.#parts["sentence-field"].hidden = sentences.length < 2;
    this.#parts.explained.textContent = KINDS[this.#kind].explained;
    const weights = this.#weights();
    if (weights === null) return;
    const chosen = { layer: this.#layer, head: this.#head };
    const heads = [...range(this.#model.heads), "mean"];
    this.#heads.show(this.#matrices.layers(this.#kind), heads, (layer, head) => this.#weights(layer, head), chosen);
    this.#map.show(weights, this.#name);
    this.#scale();
    this.#tabulate();
  }

  #scale() {
    const weights = this.#weights();
    if (!weights) return;
    const bar = element("span", { className: "ramp-bar", "aria-hidden": "true" });
    const colors = sequential(isDark());
    bar.style.background = `linear-gradient(to right, ${[0, 51, 102, 153, 204, 255].map((i) => css(colors[i])).join(", ")})`;
    this.#parts.ramp.replaceChildren("0", bar, largestOf(weights).toFixed(2));
  }

  #tabulate() {
    const weights = this.#weights();
    if (this.#parts.table.open && weights) this.#parts["table-box"].replaceChildren(tableOf(weights, this.#name));
  }

  #point(row, column) {
    const weights = this.#weights();
    if (row === null || !weights) {
      this.#parts.readout.replaceChildren("Point at a cell, or walk them with the arrow keys.");
      this.#listener.pointed(null);
      return;
    }
    const [from, to] = [weights.rows[row], weights.columns[column]];
    const value = weights.values[row * weights.columns.length + column];
    this.#parts.readout.replaceChildren(element("strong", {}, label(from)), " to ", element("strong", {}, label(to)), ` ${value.toFixed(3)}`);
    const rowSide = this.#kind === "encoder" ? "source" : "target";
    const columnSide = this.#kind === "decoder" ? "target" : "source";
    this.#listener.pointed({ row: from, column: to, rowSide, columnSide });
  }
}

function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, name]) => element("option", { value: String(value) }, name)));
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}
