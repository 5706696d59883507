/** The attention matrices of an answer. */

/**
 * @typedef {import("./types.js").Attention} Attention
 * @typedef {import("./types.js").Kind} Kind
 * @typedef {import("./types.js").Token} Token
 *
 * @typedef {object} Weights  One matrix with its tokens.
 * @property {Token[]} rows
 * @property {Token[]} columns
 * @property {Float32Array} values  Row after row.
 */

/** @param {string} encoded  Base64 of little-endian float32. */
export function floats(encoded) {
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

/** The matrices of one answer by kind, layer and head, decoded when they are first shown. */
export class Matrices {
  #attention;
  /** @type {Map<import("./types.js").Matrix, Weights>} */
  #decoded = new Map();

  /** @param {Attention} attention */
  constructor(attention) {
    this.#attention = attention;
  }

  /** Returns the rows in which the sentences of a kind begin. */
  sentences(kind) {
    return [...new Set(this.#of(kind).map((matrix) => matrix.first_row))];
  }

  layers(kind) {
    return [...new Set(this.#of(kind).map((matrix) => matrix.layer))];
  }

  /**
   * @param {Kind} kind
   * @param {number} layer
   * @param {number | "mean"} head  A head, or the mean of all heads.
   * @param {number} sentence
   * @returns {Weights | null}
   */
  weights(kind, layer, head, sentence) {
    const firstRow = this.sentences(kind)[sentence];
    const heads = this.#of(kind).filter((matrix) => matrix.layer === layer && matrix.first_row === firstRow);
    if (head !== "mean") {
      const found = heads.find((matrix) => matrix.head === head);
      return found ? this.#weights(found) : null;
    }
    return heads.length > 0 ? mean(heads.map((matrix) => this.#weights(matrix))) : null;
  }

  #of(kind) {
    return this.#attention.matrices.filter((matrix) => matrix.kind === kind);
  }

  #weights(matrix) {
    let found = this.#decoded.get(matrix);
    if (!found) {
      const { rows, columns, first_row, first_column, shape } = matrix;
      found = {
        rows: this.#attention[rows].slice(first_row, first_row + shape[0]),
        columns: this.#attention[columns].slice(first_column, first_column + shape[1]),
        values: floats(matrix.weights),
      };
      this.#decoded.set(matrix, found);
    }
    return found;
  }
}

/** @param {Weights[]} matrices @returns {Weights} */
function mean(matrices) {
  const values = matrices[0].values.map((_, i) => matrices.reduce((sum, { values: of }) => sum + of[i], 0) / matrices.length);
  return { ...matrices[0], values };
}
