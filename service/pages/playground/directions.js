/**
 * What can be translated into what, and by which models: with hundreds of languages, pairs are never listed.
 *
 * Where no model has a direction, two may have it together, through a language that one writes and the other reads.
 */

/**
 * @typedef {import("./types.js").Model} Model
 * @typedef {{source: string, target: string, model: Model | null}} Choice  Without a model the service chooses.
 */

/** The source where the service is to detect the language. */
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
 * The words of a text and what is between them: no space tells the words of Japanese.
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
    /** Whether there are more than one direction and its opposite. */
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
   * What comes nearest to a wish. Without one: from the page's language, into one of the visitor's from which there is a
   * way back.
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
    const source = wish.source === AUTO ? AUTO : known;
    const target = best(this.targets(source), [
      (code) => code === wish.target,
      (code) => this.models(source, code).length > 0,
      (code) => this.models(code, source).length > 0,
      (code) => OF_VISITOR.has(code),
    ]);
    const models = this.models(source, target);
    return { source, target, model: models.find(({ name }) => name === wish.model) ?? models[0] ?? null };
  }

  /** @param {string} name */
  named(name) {
    return this.#models.find((model) => model.name === name) ?? null;
  }

  /** How many hypotheses a model has at once; the fewest of all, where it is not known which model answers. */
  beam(model) {
    const sizes = (model ? [model] : this.#models).map(({ decoding }) => decoding?.beam_size ?? 1);
    return Math.min(...sizes);
  }

  /** Into which languages these are translated by one model. */
  #written(sources) {
    const able = this.#models.filter((model) => sources.some((source) => model.sources.includes(source)));
    return unique(able.flatMap((model) => model.targets));
  }
}

/**
 * The first one that most of the tests are true of; one test counts more than all that follow it.
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
