/**
 * Which languages are translated into which, and by which models. With hundreds of languages, pairs are never listed.
 *
 * If no model has a direction, two may have it together, through a language that one writes and the other reads.
 */

/**
 * @typedef {import("./types.js").Model} Model
 * @typedef {{source: string, target: string, model: Model | null}} Choice  Without a model the service chooses.
 */

/** The source that asks the service to detect the language. */
export const AUTO = "auto";

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });

const OF_PAGE = document.documentElement.lang;
const OF_VISITOR = new Set(navigator.languages.flatMap((tag) => [tag, tag.split("-")[0]]));

/** @param {string} code */
export function nameOf(code) {
  try {
    return NAMES.of(code);
  } catch {
    return code;
  }
}

/**
 * Returns the words of a text and the text between them; the browser finds words of Japanese too, without spaces.
 *
 * @param {string} text
 * @param {string} language
 */
export function segments(text, language) {
  const by = { granularity: "word" };
  try {
    return [...new Intl.Segmenter(language, by).segment(text)];
  } catch {
    return [...new Intl.Segmenter(OF_PAGE, by).segment(text)];
  }
}

export class Directions {
  #models;

  /** @param {Model[]} models */
  constructor(models) {
    this.#models = models;
    this.sources = unique(models.flatMap((model) => model.sources)).filter((source) => this.targets(source).length > 0);
    /** Whether there are more directions than one and its opposite. */
    this.many = this.sources.length > 2 || this.sources.some((source) => this.targets(source).length > 1);
  }

  /** @param {string} source @returns {string[]} */
  targets(source) {
    if (source === AUTO) return unique(this.sources.flatMap((one) => this.targets(one)));
    const direct = this.#written([source]);
    return unique([...direct, ...this.#written(direct)]).filter((target) => target !== source);
  }

  /** @param {string} source @param {string} target */
  models(source, target) {
    return this.#models.filter((model) => model.sources.includes(source) && model.targets.includes(target));
  }

  has({ source, target }) {
    return source !== target && (source === AUTO || this.sources.includes(source)) && this.targets(source).includes(target);
  }

  /**
   * What comes nearest to a wish. Without one the language is detected; the target is what comes nearest from the page's
   * language, one of the visitor's from which there is a way back.
   *
   * @param {{source?: string | null, target?: string | null, model?: string | null}} [wish]
   * @returns {Choice}
   */
  nearest(wish = {}) {
    const known = best(this.sources, [
      (code) => code === wish.source,
      (code) => this.has({ source: code, target: wish.target }),
      (code) => code === OF_PAGE,
    ]);
    const detects = wish.source === AUTO || (!wish.source && !wish.model && this.many);
    const source = detects ? AUTO : known;
    const target = best(this.targets(known).toSorted(), [
      (code) => code === wish.target,
      (code) => this.models(known, code).length > 0,
      (code) => this.models(code, known).length > 0,
      (code) => OF_VISITOR.has(code),
    ]);
    const wished = detects && wish.target && this.targets(AUTO).includes(wish.target) ? wish.target : target;
    const models = this.models(source, wished);
    return { source, target: wished, model: models.find(({ name }) => name === wish.model) ?? models[0] ?? null };
  }

  /** @param {string} name */
  named(name) {
    return this.#models.find((model) => model.name === name) ?? null;
  }

  /** Returns the beam size of a model; the smallest of all if it is not known which model answers. */
  beam(model) {
    const sizes = (model ? [model] : this.#models).map(({ decoding }) => decoding?.beam_size ?? 1);
    return Math.min(...sizes);
  }

  /** Returns the languages into which one model translates any of these. */
  #written(sources) {
    const able = this.#models.filter((model) => sources.some((source) => model.sources.includes(source)));
    return unique(able.flatMap((model) => model.targets));
  }
}

/**
 * Returns the first item that fits the tests best; each test counts more than all that follow it.
 *
 * @template T
 * @param {T[]} all
 * @param {((one: T) => boolean)[]} tests
 */
function best(all, tests) {
  const score = (one) => tests.reduce((sum, test) => 2 * sum + Number(test(one)), 0);
  return all.reduce((first, other) => (score(other) > score(first) ? other : first));
}

/** @param {string[]} codes */
function unique(codes) {
  return [...new Set(codes)];
}
