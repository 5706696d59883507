/** A text in a box, cut into words or tokens; it knows where each is, and how each looks. */

import { carried, cut } from "./spans.js";

/** @typedef {import("./types.js").Token} Token */

/** A token that is less probable is underlined thickly. */
const VERY_UNSURE = 0.2;

export class WordLine {
  /** @type {import("./spans.js").Piece[]} */
  #pieces = [];
  /** @type {HTMLElement[][]}  The elements of each token. */
  #elements = [];
  /** @type {{box: DOMRect, tokens: number[]}[] | null}  Where the words are, relative to the box. */
  #places = null;
  #text = "";
  /** @type {Map<number, number>}  How probable the tokens are of which the model was unsure. */
  #doubts = new Map();

  /** @param {HTMLElement} box */
  constructor(box) {
    this.box = box;
    new ResizeObserver(() => (this.#places = null)).observe(box);
  }

  get text() {
    return this.#text;
  }

  /**
   * @param {string} text
   * @param {Token[]} tokens
   */
  show(text, tokens) {
    this.#text = text;
    this.#elements = [];
    this.#doubts = new Map();
    this.#render(cut(text, tokens));
  }

  /** Shows a changed text; words that it still has stay as they are. */
  change(text) {
    const { pieces, ahead, behind } = carried(this.#text, text, this.#pieces);
    this.#text = text;
    this.#render(pieces, ahead, behind);
  }

  /** @param {(string | undefined)[]} colors  The color of each token. */
  paint(colors) {
    this.#elements.forEach((elements, i) => elements.forEach((word) => (word.style.backgroundColor = colors[i] ?? "")));
  }

  /**
   * Gives a class to these tokens, and takes it from all others.
   *
   * @param {string} name
   * @param {Iterable<number>} tokens
   */
  mark(name, tokens) {
    for (const word of this.box.querySelectorAll(`.${name}`)) word.classList.remove(name);
    for (const i of tokens) this.#elements[i]?.forEach((word) => word.classList.add(name));
  }

  /**
   * Underlines tokens of which the model was unsure: the less probable, the thicker.
   *
   * @param {Map<number, number>} probabilities  By the number of the token.
   */
  doubt(probabilities) {
    this.#doubts = probabilities;
    this.mark("unsure", probabilities.keys());
    this.mark("very", [...probabilities].filter(([, probability]) => probability < VERY_UNSURE).map(([i]) => i));
    for (const i of probabilities.keys()) for (const word of this.#elements[i] ?? []) word.title = this.doubtOf(i);
  }

  /** Returns how unsure the model was of a token, in words; "" if it was not. */
  doubtOf(token) {
    const probability = this.#doubts.get(token);
    return probability === undefined ? "" : `unsure, ${Math.round(100 * probability)} %`;
  }

  /** Returns the tokens that have characters in a range of UTF-16 units. */
  within(start, end) {
    return this.#pieces.filter((piece) => piece.start < end && start < piece.end).flatMap((piece) => piece.tokens);
  }

  /** Returns the token at a position between two characters: the one that begins there, or the one that ends there. */
  atOffset(offset) {
    const touching = this.#pieces.filter((piece) => piece.tokens.length > 0 && piece.start <= offset && offset <= piece.end);
    return touching.at(-1)?.tokens[0] ?? null;
  }

  /** Returns the token at a point of the window. */
  atPoint(x, y) {
    const origin = this.box.getBoundingClientRect();
    const [left, top] = [x - origin.left, y - origin.top];
    this.#places ??= this.#measured(origin);
    const hit = this.#places.find(({ box }) => box.left <= left && left <= box.right && box.top <= top && top <= box.bottom);
    return hit?.tokens[0] ?? null;
  }

  /** Returns the piece of text that a token is in. */
  wordOf(token) {
    const piece = this.#pieces.find(({ tokens }) => tokens.includes(token));
    return piece ? this.#text.slice(piece.start, piece.end) : "";
  }

  /** Returns the text before the piece that a token is in. */
  before(token) {
    return this.#text.slice(0, this.#pieces.find(({ tokens }) => tokens.includes(token))?.start ?? 0);
  }

  /** Returns the tokens that can be pointed at, in order; tokens of the same characters are together. */
  get groups() {
    return this.#pieces.filter(({ tokens }) => tokens.length > 0).map(({ tokens }) => tokens);
  }

  /** Shows pieces; those at both ends may be shown already, since long texts take long. */
  #render(pieces, ahead = 0, behind = 0) {
    const nodes = [...this.box.childNodes];
    const shown = this.#pieces.length;
    const made = pieces.slice(ahead, pieces.length - behind).map((piece) => this.#made(piece));
    for (const node of nodes.slice(ahead, shown - behind)) node.remove();
    for (const node of nodes.slice(shown)) node.remove();
    this.box.insertBefore(fragment(made), behind > 0 ? nodes[shown - behind] : null);
    // A line break at the end makes another line in an editor, but not in a box.
    if (this.#text.endsWith("\n") || this.#text === "") this.box.append("\u200b");
    this.#pieces = pieces;
    this.#places = null;
  }

  #made({ start, end, tokens }) {
    const written = this.#text.slice(start, end);
    if (tokens.length === 0) return document.createTextNode(written);
    const word = document.createElement("span");
    word.className = "word";
    word.textContent = written;
    for (const i of tokens) (this.#elements[i] ??= []).push(word);
    return word;
  }

  #measured(origin) {
    return this.#pieces
      .filter(({ tokens }) => tokens.length > 0)
      .flatMap(({ tokens }) =>
        [...this.#elements[tokens[0]][0].getClientRects()].map((rect) => ({
          tokens,
          box: new DOMRect(rect.left - origin.left, rect.top - origin.top, rect.width, rect.height),
        })),
      );
  }
}

function fragment(nodes) {
  const whole = document.createDocumentFragment();
  for (const node of nodes) whole.append(node);
  return whole;
}
