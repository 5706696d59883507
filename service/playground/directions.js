/** What can be translated into what, by which model. */

/**
 * @typedef {import("./types.js").Model} Model
 * @typedef {{model: Model, source: string, target: string, name: string}} Choice
 */

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });

const OF_PAGE = document.documentElement.lang;
const OF_VISITOR = new Set(navigator.languages.map((tag) => tag.split("-")[0]));

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

/**
 * One for each direction of each model, with the model's name where several could do it. First come those that have
 * their opposite, which whoever opens the page can swap; of these such as read the page's language, and of these such
 * as write one of the visitor's.
 *
 * @param {Model[]} models
 * @returns {Choice[]}
 */
export function choices(models) {
  const all = models.flatMap((model) => 
    model.sources.flatMap((source) =>
      model.targets.filter((target) => target !== source).map((target) => ({ model, source, target })),
    ),
  );
  const named = all.map((choice) => {
    const alike = all.filter(({ source, target }) => source === choice.source && target === choice.target);
    const name = `${nameOf(choice.source)} to ${nameOf(choice.target)}`;
    return { ...choice, name: alike.length > 1 ? `${name} (${choice.model.name})` : name };
  });
  const rank = (/** @type {Choice} */ choice) =>
    (opposite(named, choice) ? 0 : 4) + (choice.source === OF_PAGE ? 0 : 2) + (OF_VISITOR.has(choice.target) ? 0 : 1);
  return named.sort((a, b) => rank(a) - rank(b));
}

/**
 * The one that a page's state names, or the first.
 *
 * @param {Choice[]} all
 * @param {URLSearchParams} state
 */
export function choiceOf(all, state) {
  const fits = ["source", "target"].reduce((left, key) => left.filter((choice) => choice[key] === state.get(key)), all);
  return fits.find(({ model }) => model.name === state.get("model")) ?? fits[0] ?? all[0];
}

/**
 * @param {Choice[]} all
 * @param {Choice} choice
 */
export function opposite(all, { source, target }) {
  return all.find((other) => other.source === target && other.target === source);
}
