/** Highlights the words of one text that are aligned with the word pointed at in the other. */

import { announce } from "./dom.js";

/** @typedef {"source" | "target"} Side */

export class WordLinks {
  #lines;
  #chosen;
  /** @type {Record<Side, Map<number, number[]>>}  For each word its aligned words on the other side. */
  #others = { source: new Map(), target: new Map() };

  /**
   * @param {Record<Side, import("./wordline.js").WordLine>} lines
   * @param {(word: number, byKeyboard: boolean) => void} chosen  A word of the target is clicked, or Enter is pressed.
   */
  constructor(lines, chosen) {
    this.#lines = lines;
    this.#chosen = chosen;
    this.#walkable(lines.target);
  }

  /** @param {string} pairs  As in Pharaoh's format: "0-0 1-2". */
  link(pairs) {
    this.#others = { source: new Map(), target: new Map() };
    for (const pair of pairs.split(" ").filter(Boolean)) {
      const [source, target] = pair.split("-").map(Number);
      append(this.#others.source, source, target);
      append(this.#others.target, target, source);
    }
  }

  /**
   * @param {Side} side
   * @param {number | null} word
   * @param {boolean} [spoken]
   */
  point(side, word, spoken = false) {
    const other = side === "source" ? "target" : "source";
    const words = word === null ? [] : (this.#others[side].get(word) ?? []);
    this.#lines[side].mark("pointed", word === null ? [] : [word]);
    this.#lines[side].mark("lit", []);
    this.#lines[other].mark("pointed", []);
    this.#lines[other].mark("lit", words);
    if (!spoken || word === null) return;
    const found = words.map((i) => this.#lines[other].wordOf(i)).join(" ");
    const doubt = this.#lines[side].doubtOf(word);
    announce(`${this.#lines[side].wordOf(word)}: ${found || "no counterpart"}${doubt && `; ${doubt}`}`);
  }

  /** Highlights words on both sides, for a cell of an attention matrix. */
  light(source, target) {
    for (const name of ["pointed", "lit"]) for (const line of Object.values(this.#lines)) line.mark(name, []);
    this.#lines.source.mark("lit", source);
    this.#lines.target.mark("lit", target);
  }

  /** Lets words of a text that is not edited be pointed at by pointer, and by arrow keys if the text has the focus. */
  #walkable(line) {
    const { box } = line;
    let place = 0;
    const point = (spoken) => this.point("target", line.groups[place]?.[0] ?? null, spoken);
    box.tabIndex = 0;
    box.addEventListener("pointermove", (event) => this.point("target", line.atPoint(event.clientX, event.clientY)));
    box.addEventListener("pointerleave", () => this.point("target", null));
    box.addEventListener("click", (event) => {
      const word = line.atPoint(event.clientX, event.clientY);
      if (word !== null) place = line.groups.findIndex((tokens) => tokens.includes(word));
      this.point("target", word);
      if (word !== null && getSelection()?.isCollapsed) this.#chosen(word, false);
    });
    box.addEventListener("focus", () => {
      place = 0;
      if (box.matches(":focus-visible")) point(true);
    });
    box.addEventListener("blur", () => this.point("target", null));
    box.addEventListener("keydown", (event) => {
      const last = line.groups.length - 1;
      const word = line.groups[place]?.[0];
      if (event.key === "Enter" && word !== undefined) {
        event.preventDefault();
        this.#chosen(word, true);
      }
      const moves = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: last };
      if (!(event.key in moves)) return;
      event.preventDefault();
      place = Math.max(0, Math.min(last, moves[event.key]));
      point(true);
    });
  }
}

function append(map, key, value) {
  map.set(key, [...(map.get(key) ?? []), value]);
}
