/** What to expect of a model: how large it is, where it came from, its scores, and that there are better ones. */

const METRICS = { bleu: "BLEU", bleu_of_characters: "BLEU of characters" };
const MOST_TESTS = 4;
const UNITS = { accuracy: " %" };

/** The scores of sentences that small models get wrong: no test set. */
const CASES = "cases";

/** BLEU by kind of text. */
const KINDS = "kinds";

const ADVICE = "Better models can be imported: the command “make model” lists them.";

/** @param {import("./types.js").Model[]} models  The model that answers, or both where one translates for the other. */
export function expectation(models) {
  if (models.length === 1) return ofOne(models[0]);
  return models.some(({ small }) => small) ? `Small models, trained with attend; two in a row make more mistakes than one. ${ADVICE}` : "";
}

/** @param {import("./types.js").Model} model */
function ofOne(model) {
  const { origin, licence, small, parameters } = model;
  const size = parameters === undefined ? "" : ` (${sized(parameters)} parameters)`;
  const own = small ? `A small model${size}, trained with attend.` : `Trained with attend${size}.`;
  const imported = `Imported from ${origin?.source}${size}${licence ? `, licence ${licence}` : ""}.`;
  const known = parameters !== undefined || origin !== undefined;
  return [
    known ? (origin ? imported : own) : "",
    kinds(model.expect ?? {}),
    scores(model.evaluation, origin !== undefined),
    small ? ADVICE : "",
  ]
    .filter((sentence) => sentence !== "")
    .join(" ");
}

/** Returns by kind of text what to expect. @param {Record<string, string[]>} expect */
function kinds(expect) {
  const sentence = Object.entries(expect).map(([word, kinds]) => `${word} with ${kinds.join(", ")}`).join("; ");
  return sentence && `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
}

/** @param {number} count */
function sized(count) {
  const [unit, name] = count >= 1e9 ? [1e9, "billion"] : [1e6, "million"];
  return `${new Intl.NumberFormat("en", { maximumSignificantDigits: 2 }).format(count / unit)} ${name}`;
}

/**
 * Returns the first metric of each test set as a sentence.
 *
 * @param {Record<string, Record<string, number>>} evaluation
 * @param {boolean} published  Whether others have measured it.
 */
function scores(evaluation, published) {
  const tests = Object.entries(evaluation).filter(([test, metrics]) => test !== CASES && test !== KINDS && Object.keys(metrics).length > 0);
  let last = "";
  const told = tests.slice(0, MOST_TESTS).map(([test, metrics]) => {
    const [metric, score] = Object.entries(metrics)[0];
    const name = METRICS[metric] ?? metric.replaceAll("_", " ");
    // Our names of test sets end in the languages, which the page shows already.
    const where = published ? test : test.replace(/\.[a-z]{2,3}-[a-z]{2,3}$/, "");
    const said = `${name === last ? "" : `${name} `}${score.toFixed(1)}${UNITS[metric] ?? ""} on ${where}`;
    last = name;
    return said;
  });
  if (told.length === 0) return "";
  const more = tests.length > MOST_TESTS ? `; ${tests.length - MOST_TESTS} more in GET /models` : "";
  const sentence = `${published ? "as published, " : ""}${told.join(", ")}${more}.`;
  return sentence.replace(/^[a-z]/, (letter) => letter.toUpperCase());
}
