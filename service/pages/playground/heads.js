/** Small pictures of all heads of all layers; a chosen head is shown large. */

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
   * @param {{layer: number, head: Head}} chosen
   */
  show(layers, heads, weightsOf, chosen) {
    this.#redraw = () => {
      const focused = this.#box.contains(document.activeElement);
      this.#rows = layers.map((layer) => heads.map((head) => this.#picture(layer, head, weightsOf(layer, head), chosen)));
      this.#box.style.gridTemplateColumns = `auto repeat(${heads.length}, minmax(0, 1fr))`;
      this.#box.replaceChildren(
        axis(""),
        ...heads.map((head) => axis(String(head))),
        ...this.#rows.flatMap((row, i) => [axis(String(layers[i])), ...row.map(({ button }) => button)]),
      );
      if (focused) this.#at(chosen.layer, chosen.head)?.button.focus();
    };
    this.#redraw();
  }

  #picture(layer, head, weights, chosen) {
    const name = head === "mean" ? `Layer ${layer}, mean of its heads` : `Layer ${layer}, head ${head}`;
    const pressed = layer === chosen.layer && head === chosen.head;
    const button = element("button", { className: "head", "aria-label": name, title: name, tabIndex: pressed ? 0 : -1 });
    button.setAttribute("aria-pressed", String(pressed));
    if (weights) button.append(painted(weights, largestOf(weights)));
    button.addEventListener("click", () => this.#choose(layer, head));
    return { layer, head, button };
  }

  #at(layer, head) {
    return this.#rows.flat().find((picture) => picture.layer === layer && picture.head === head);
  }

  #walk(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    const row = this.#rows.findIndex((pictures) => pictures.some(({ button }) => button === event.target));
    if (!step || row < 0) return;
    event.preventDefault();
    const column = this.#rows[row].findIndex(({ button }) => button === event.target);
    const next = this.#rows[row + step[0]]?.[column + step[1]];
    if (next) this.#choose(next.layer, next.head);
  }
}

function axis(text) {
  return element("span", { className: "axis", "aria-hidden": "true" }, text);
}
