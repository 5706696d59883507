/** One attention matrix as a heat map: a row for each token that attends, a column for each that is attended to. */

import { isDark, onScheme, sequential } from "./colors.js";
import { element } from "./dom.js";
import { label } from "./spans.js";

/** @typedef {import("./tensors.js").Weights} Weights */

const LARGEST_CELL = 32;
const LONGEST_LABEL = 150;
/** Part of the width that a label may take, so that on a phone all columns have room. */
const MOST_OF_WIDTH = 0.18;
const LABEL_GAP = 8;
const SLANT = Math.PI / 4;

/**
 * Paints a matrix, one pixel per weight; the page enlarges it.
 *
 * @param {Weights} weights
 * @param {number} largest  The weight that gets the strongest colour.
 * @returns {HTMLCanvasElement}
 */
export function painted({ rows, columns, values }, largest) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns.length, rows.length];
  const colors = sequential(isDark());
  const image = new ImageData(canvas.width, canvas.height);
  values.forEach((value, i) => image.data.set([...colors[Math.round((255 * value) / largest)], 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** @param {Weights} weights */
export function largestOf({ values }) {
  return values.reduce((largest, value) => Math.max(largest, value), 0) || 1;
}

export class HeatMap {
  #scroller;
  #frame;
  #canvas = document.createElement("canvas");
  #ring = element("div", { className: "ring", hidden: true });
  #pointed;
  /** @type {Weights | null} */
  #weights = null;
  #cell = [0, 0];
  /** The geometry of the cells, in CSS pixels. */
  #grid = { left: 0, top: 0, cell: 1 };

  /**
   * @param {HTMLElement} scroller
   * @param {(row: number | null, column: number | null) => void} pointed  At a cell, or at none any more.
   */
  constructor(scroller, pointed) {
    this.#scroller = scroller;
    this.#pointed = pointed;
    this.#frame = element("div", { className: "heat-frame", role: "application", tabIndex: 0, "aria-roledescription": "heat map" });
    this.#frame.append(this.#canvas, this.#ring);
    scroller.replaceChildren(this.#frame);
    this.#frame.addEventListener("pointermove", (event) => this.#follow(event));
    this.#frame.addEventListener("pointerdown", (event) => this.#follow(event));
    this.#frame.addEventListener("pointerleave", () => this.#leave());
    this.#frame.addEventListener("blur", () => this.#leave());
    this.#frame.addEventListener("focus", () => this.#frame.matches(":focus-visible") && this.#go(...this.#cell));
    this.#frame.addEventListener("keydown", (event) => this.#walk(event));
    new ResizeObserver(() => this.#draw()).observe(scroller);
    onScheme(() => this.#draw());
  }

  /** @param {Weights} weights @param {string} name */
  show(weights, name) {
    const [row, column] = this.#cell;
    this.#weights = weights;
    this.#cell = [Math.min(row, weights.rows.length - 1), Math.min(column, weights.columns.length - 1)];
    this.#frame.setAttribute("aria-label", `${name}, ${weights.rows.length} by ${weights.columns.length}. Arrow keys walk its cells.`);
    this.#draw();
    this.#leave();
  }

  #draw() {
    const width = this.#scroller.clientWidth;
    if (this.#weights === null || width === 0) return;
    const { rows, columns } = this.#weights;
    const style = getComputedStyle(this.#frame);
    const context = this.#canvas.getContext("2d");
    const font = `${style.fontSize} ${style.fontFamily}`;
    context.font = font;
    const most = Math.min(LONGEST_LABEL, width * MOST_OF_WIDTH);
    const longest = (tokens) => Math.min(most, Math.max(...tokens.map((token) => context.measureText(label(token)).width)));
    // With thousands of cells there is no room for labels, and the size of a canvas is limited.
    const labelled = Math.max(rows.length, columns.length) <= 128;
    const left = labelled ? Math.ceil(longest(rows)) + LABEL_GAP : 0;
    const slanted = labelled ? Math.ceil((longest(columns) + LABEL_GAP) * Math.sin(SLANT)) + LABEL_GAP : 0;
    const smallest = labelled ? 14 : 4;
    const room = Math.floor((width - left - slanted) / columns.length);
    const cell = Math.max(smallest, Math.min(LARGEST_CELL, room));
    this.#grid = { left, top: slanted, cell };
    this.#resize(left + cell * columns.length + slanted, slanted + cell * rows.length);
    this.#drawCells(context, rows.length, columns.length);
    if (!labelled) return;
    context.font = font;
    context.fillStyle = style.color;
    context.textBaseline = "middle";
    rows.forEach((token, i) => {
      context.textAlign = "right";
      context.fillText(label(token), left - LABEL_GAP, slanted + (i + 0.5) * cell, most);
    });
    columns.forEach((token, j) => {
      context.save();
      context.translate(left + (j + 0.5) * cell, slanted - LABEL_GAP);
      context.rotate(-SLANT);
      context.textAlign = "left";
      context.fillText(label(token), 0, 0, most);
      context.restore();
    });
  }

  #resize(width, height) {
    const ratio = devicePixelRatio;
    [this.#canvas.width, this.#canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [this.#canvas.style.width, this.#canvas.style.height] = [`${width}px`, `${height}px`];
    this.#canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  #drawCells(context, rows, columns) {
    const { left, top, cell } = this.#grid;
    context.imageSmoothingEnabled = false;
    context.drawImage(painted(this.#weights, largestOf(this.#weights)), left, top, columns * cell, rows * cell);
    if (cell < 12) return;
    for (let i = 0; i <= rows; i += 1) context.clearRect(left, top + i * cell - 0.5, columns * cell, 1);
    for (let j = 0; j <= columns; j += 1) context.clearRect(left + j * cell - 0.5, top, 1, rows * cell);
  }

  #follow(event) {
    const { left, top, cell } = this.#grid;
    const origin = this.#frame.getBoundingClientRect();
    const row = Math.floor((event.clientY - origin.top - top) / cell);
    const column = Math.floor((event.clientX - origin.left - left) / cell);
    if (this.#weights?.rows[row] && this.#weights.columns[column]) this.#go(row, column);
    else this.#leave();
  }

  #walk(event) {
    if (this.#weights === null) return;
    const [row, column] = this.#cell;
    const [lastRow, lastColumn] = [this.#weights.rows.length - 1, this.#weights.columns.length - 1];
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, lastColumn],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const [nextRow, nextColumn] = moves[event.key];
    this.#go(Math.max(0, Math.min(lastRow, nextRow)), Math.max(0, Math.min(lastColumn, nextColumn)));
    this.#ring.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #go(row, column) {
    const { left, top, cell } = this.#grid;
    this.#cell = [row, column];
    this.#ring.hidden = false;
    Object.assign(this.#ring.style, {
      left: `${left + column * cell}px`,
      top: `${top + row * cell}px`,
      width: `${cell}px`,
      height: `${cell}px`,
    });
    this.#pointed(row, column);
  }

  #leave() {
    this.#ring.hidden = true;
    this.#pointed(null, null);
  }
}
