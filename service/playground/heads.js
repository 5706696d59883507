/** All heads of all layers at once, as small pictures; choosing one enlarges it. */

import { onScheme } from "./colors.js";
import { element } from "./dom.js";
import { largestOf, painted } from "./heatmap.js";

/** @typedef {number | "mean"} Head */

export class Heads {
  #box;
  #choose;
  /** @type {{layer: number, head: Head, button: HTMLElement}[][]}  By layer. */
  #rows = [];
  #redraw = () => {};

  /**
   * @param {HTMLElement} box
   * @param {(layer: number, head: Head) => void} choose
   */
  constructor(box, choose) {
    this.#box = box;
    this.#choose = choose;
    box.addEventListener("keydown", (event) => this.#walk(event));
    onScheme(() => this.#redraw());
  }

  /**
   * @param {number[]} layers
   * @param {Head[]} heads
   * @param {(layer: number, head: Head) => import("./tensors.js").Weights | null} weightsOf
   */
  show(layers, heads, weightsOf) {
    this.#redraw = () => {
      const focused = this.#box.contains(document.activeElement);
      const current = this.#current();
      this.#rows = layers.map((layer) => heads.map((head) => this.#picture(layer, head, weightsOf(layer, head))));
      this.#box.style.gridTemplateColumns = `auto repeat(${heads.length}, minmax(0, 1fr))`;
      this.#box.replaceChildren(
        element("span", {}),
        ...heads.map((head) => element("span", { className: "axis", "aria-hidden": "true" }, String(head))),
        ...this.#rows.flatMap((row, i) => [
          element("span", { className: "axis", "aria-hidden": "true" }, String(layers[i])),
          ...row.map(({ button }) => button),
        ]),
      );
      if (current) this.mark(current.layer, current.head);
      if (focused) this.#current()?.button.focus();
    };
    this.#redraw();
  }

  /** @param {number} layer @param {Head} head */
  mark(layer, head) {
    for (const picture of this.#rows.flat()) {
      const chosen = picture.layer === layer && picture.head === head;
      picture.button.setAttribute("aria-pressed", String(chosen));
      picture.button.tabIndex = chosen ? 0 : -1;
    }
  }

  #picture(layer, head, weights) {
    const name = head === "mean" ? `Layer ${layer}, mean of its heads` : `Layer ${layer}, head ${head}`;
    const button = element("button", { className: "head", "aria-label": name, "aria-pressed": "false", title: name, tabIndex: -1 });
    if (weights) button.append(painted(weights, largestOf(weights)));
    button.addEventListener("click", () => this.#choose(layer, head));
    return { layer, head, button };
  }

  #current() {
    return this.#rows.flat().find(({ button }) => button.tabIndex === 0);
  }

  #walk(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    const row = this.#rows.findIndex((pictures) => pictures.some(({ button }) => button === event.target));
    if (!step || row < 0) return;
    event.preventDefault();
    const column = this.#rows[row].findIndex(({ button }) => button === event.target);
    const next = this.#rows[row + step[0]]?.[column + step[1]];
    if (!next) return;
    this.#choose(next.layer, next.head);
    this.#rows.flat().find(({ layer, head }) => layer === next.layer && head === next.head)?.button.focus();
  }
}
