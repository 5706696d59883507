"""The model card, written from what a checkpoint is made of and what evaluation measured."""

from collections.abc import Iterable, Sequence
from typing import Any

from model.compression import BLOCK
from model.config import (
    ClassifierConfig,
    Config,
    LanguageModelConfig,
    ModelConfig,
    RecurrentConfig,
)
from model.evaluation.cases import CaseResult, pass_counts
from model.evaluation.scoring import TestResult, worst_sentences
from model.recipe import DataSource, Experiment

N_EXAMPLES = 5
WORST_AMONG = 1000
"""Rows of a test set among which the worst are looked for."""
FAILURES_SHOWN = 3
"""Of each category of cases."""
LONGEST_SHOWN = 240
"""Characters of a text in a table."""

CALIBRATION = (
    "The calibration error says how far the score can be taken for a probability: texts are put into 15 bins of equal "
    "width by the score of the label they were given, and it is the mean difference between the score and the share of "
    "right labels in a bin (Guo et al. 2017, expected calibration error). At 0, nine of ten answers with score 0.9 are "
    "right. The negative log-likelihood is in nats; always saying that both labels are as likely has 0.693."
)

ADDRESS = {
    "fr": " and forms of address (tu or vous)",
    "de": " and forms of address (du or Sie)",
    "ru": ", forms of address (ты or вы) and the gender of who speaks",
    "ja": " and how polite it is (だ or です)",
}
"""What else may change from sentence to sentence, by target language."""

METRICS = {"bleu": "BLEU", "bleu_of_characters": "BLEU of characters", "chrf": "chrF"}
"""Of translations."""

REWRITES = {
    None: "",
    "other_names": ", with other names and numbers",
    "other_numbers": ", with other numbers, times and dates",
    "no_capitals": ", the source without capitals",
    "no_final_punctuation": ", without final punctuation",
    "half_width": ", characters in half width",
    "kanji_numbers": ", with other numbers, in kanji",
    "joined": ", several in one",
    "single_words": ": words that it pairs",
    "lists": ": lists of words that it pairs",
}


def model_card(
    config: Experiment,
    training: dict[str, Any],
    results: Sequence[TestResult],
    n_parameters: int,
    cases: Sequence[CaseResult] = (),
    is_compressed: bool = False,
) -> str:
    """Markdown: use, scores with their signatures, data with licences, training, limits, failures, examples.

    Args:
        results: of each test set, of which there is at least one.
        cases: results of the suite that fits the model, if there is one.
        is_compressed: whether the weights are in int8.
    """
    sections = [
        _header(config, n_parameters, is_compressed),
        _scores(config, results),
        _data(config, training),
        _training(config, training),
        _limits(config),
        *([_cases(cases), _failures(cases)] if cases else []),
        *_outputs(config, results[0]),
    ]
    return "\n\n".join(sections) + "\n"


def _header(config: Config, n_parameters: int, is_compressed: bool) -> str:
    model = config.model
    kind = "recurrent network" if isinstance(model, RecurrentConfig) else "Transformer"
    kept = f"in int8, with a float16 scale for every {BLOCK} of a row" if is_compressed else "float16"
    return (
        f"# {config.name}\n\n{config.description}\n\n"
        f"A {kind} of {n_parameters / 1e6:.1f} million parameters: {_layers(model)}, {model.vocab_size:,} byte-level "
        f"word pieces. Weights are safetensors, {kept}."
    )


def _layers(model: ModelConfig) -> str:
    if isinstance(model, RecurrentConfig):
        form = model.attention.replace("_", " the ")
        attention = "without attention" if form == "none" else f"with additive attention {form}"
        return (
            f"{model.n_encoder_layers} bidirectional encoder and {model.n_decoder_layers} decoder layers of "
            f"{model.cell.upper()} cells {attention}, d_model {model.d_model}"
        )
    if isinstance(model, ClassifierConfig):
        layers = f"{model.n_encoder_layers} encoder layers, {model.pooling} pooling of per-token logits"
        if model.n_grams is not None:
            layers += f", {model.n_grams.buckets:,} weights of runs of up to {model.n_grams.longest} tokens"
        if model.regions is not None:
            regions = model.regions
            width, labelled_width = 2 * regions.radius + 1, 2 * regions.labelled_radius + 1
            layers += f", {regions.detectors} detectors over regions of {width} tokens and what labels "
            layers += f"say of {labelled_width}"
    elif isinstance(model, LanguageModelConfig):
        layers = f"{model.n_decoder_layers} decoder layers without an encoder"
    else:
        layers = f"{model.n_encoder_layers} encoder and {model.n_decoder_layers} decoder layers"
    return f"{layers}, d_model {model.d_model}, {model.n_heads} heads, feed-forward {model.d_ff}, {model.norm}-norm"


def _scores(config: Config, results: Sequence[TestResult]) -> str:
    lines = ["## Scores", ""]
    if isinstance(config.model, ClassifierConfig):
        lines += [
            "| test set | texts | accuracy, % | calibration error, % | negative log-likelihood |",
            "|---|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {r.name} | {len(r.rows):,} | {r.scores['accuracy']:.2f} | {r.scores['calibration_error']:.2f} "
            f"| {r.scores['negative_log_likelihood']:.3f} |"
            for r in results
        ]
        lines += ["", CALIBRATION]
    elif isinstance(config.model, LanguageModelConfig):
        lines += [
            f"Of texts read in windows of {config.max_tokens} tokens, each of which begins without a past. Bits "
            "per byte compare with those of any model, perplexity only where the tokenizer is the same.",
            "",
            "| test set | texts | perplexity per token | bits per byte |",
            "|---|---:|---:|---:|",
        ]
        lines += [
            f"| {r.name} | {len(r.rows):,} | {r.scores['perplexity']:.1f} | {r.scores['bits_per_byte']:.3f} |"
            for r in results
        ]
    else:
        lines += [
            "Scored with greedy search (a beam of 1).",
            "",
            _row("test set", "sentences", *(METRICS[metric] for metric in results[0].scores)),
            "|---|---:|---:|---:|",
        ]
        lines += [_row(r.name, f"{len(r.rows):,}", *(f"{score:.1f}" for score in r.scores.values())) for r in results]
        lines += ["", *(f"sacrebleu {metric}: `{text}`  " for metric, text in results[0].signatures.items())]
    lines += ["", f"Made by `python -m model evaluate checkpoints/{config.name} --data DATA`."]
    return "\n".join(lines)


def _data(config: Experiment, training: dict[str, Any]) -> str:
    rows = [
        f"| {source.file}{_changes(source)} | {_share(source)} | {source.licence} |" for source in config.data.train
    ]
    if config.pretraining is not None:
        rows += [
            f"| {source.file}, without labels, before that | all | {source.licence} |"
            for source in config.pretraining.train
        ]
    if config.n_gram_training is not None:
        texts = config.n_gram_training.unlabelled
        rows += [
            f"| {source.file}, as the n-grams label it | those they are sure of | {source.licence} |"
            for source in texts
        ]
    if config.region_training is not None:
        rows += [
            f"| {source.file}, without labels, for the vectors of regions | all | {source.licence} |"
            for source in config.region_training.unlabelled
        ]
    earlier = training.get("licences", {}).items() - config.licences().items()
    rows += [f"| {file}, in an earlier run | | {licence} |" for file, licence in sorted(earlier)]
    return "\n".join(
        [
            "## Training data and licences",
            "",
            "| corpus | rows per epoch | licence, as best known |",
            "|---|---|---|",
            *rows,
            "",
            "What this means for you: the weights were trained on text under these licences. Where one of them is "
            "non-commercial, for research, or unclear, take advice before commercial use, or train again without that "
            "corpus: delete its entry from the configuration.",
        ]
    )


def _changes(source: DataSource) -> str:
    pieces = ", sources cut into smaller pieces at random" if source.merge_dropout else ""
    prefix = f", behind `{source.prefix}`" if source.prefix else ""
    return f"{REWRITES[source.rewrite]}{pieces}{prefix}"


def _share(source: DataSource) -> str:
    return "all" if source.sample is None else f"{source.sample:,}, drawn anew"


def _training(config: Experiment, training: dict[str, Any]) -> str:
    origin, runs = training.get("began_with"), training.get("runs", 1)
    start = f" --start checkpoints/{origin}" if origin else ""
    if training.get("new_vocabulary"):
        start += " --new-vocabulary"
    in_runs = f" in {runs} runs, each with a schedule of its own, the later ones begun by `--start`" if runs > 1 else ""
    threads = training["threads"]
    machine = f"{', the last run' if runs > 1 else ''} on {threads} CPU thread{'s' if threads > 1 else ''}"
    n_averaged = training["averaged_checkpoints"]
    averaged = f"; the last {n_averaged} checkpoints are averaged" if n_averaged > 1 else ""
    text = (
        "## Training\n\n"
        f"`python -m model train model/configs/{config.name}.yaml --data DATA{start}`: {training['steps']:,} steps"
        f"{in_runs}, "
        f"{training['tokens'] / 1e6:.0f} million padded tokens, {training['hours']:.1f} hours"
        f"{machine} ({training['precision']}), seed {config.training.seed}{averaged}."
    )
    if share := training.get("start_share"):
        text += f" Of the final weights {share:.0%} are those that the last run began with (`--start-share`)."
    if only := training.get("only"):
        text += f" The last run trained the model's {_words(only)} alone (`--only {only}`)."
    if origin:
        text += f" It began with the weights of {origin}: what the card of that says of corpora and licences holds too."
    return text


def _limits(config: Config) -> str:
    if isinstance(config.model, ClassifierConfig):
        text = (
            "Two labels only: a neutral text is called one or the other. Trained on film reviews; on other kinds of "
            "text, and on single sentences, expect the lower figures above. Irony, comparisons with other films and "
            "plot summaries of sad films mislead it. English only."
        )
    elif isinstance(config.model, LanguageModelConfig):
        text = (
            "Small and trained on little text: what it writes looks like its corpus and means nothing. It states no "
            "facts, follows no instructions, repeats itself under greedy choice, and repeats what prejudice the corpus "
            "has. It is for study."
        )
    else:
        person = " Who does something, which Japanese mostly leaves open, is often a guess."
        address = ADDRESS.get(config.model.target, "")
        text = (
            "Small and trained on little text: rare words, names and long news sentences are often wrong, and a fluent "
            "translation may still say something else. It does not know what was said in the sentence before, so "
            f"pronouns{address} may change between sentences.{person if config.model.source == 'ja' else ''} Input in "
            f"another language than `{config.model.source}` gives nonsense. Do not use it where a wrong translation "
            "does harm."
        )
    return f"## Limits\n\n{text}"


def _cases(results: Sequence[CaseResult]) -> str:
    counts = pass_counts(results)
    rows = [f"| {_words(name)} | {n} | {100 * passed / n:.0f} |" for name, (passed, n) in counts.items()]
    return "\n".join(
        [
            "## What it is bad at",
            "",
            "Cases that small models fail, each with a check that any good answer passes (`model/suites/`). "
            "A dozen in a category tell where a model fails, not how often it does in a text of yours. The model "
            "itself is asked: the service reads a sentence in capitals as one in small letters, and keeps URLs.",
            "",
            "| category | cases | passed, % |",
            "|---|---:|---:|",
            *rows,
        ]
    )


def _failures(results: Sequence[CaseResult]) -> str:
    """The first failed cases of each category."""
    lines = []
    for category in dict.fromkeys(result.category for result in results):
        failed = [result for result in results if result.category == category and result.problems]
        lines += [_row(_words(category), case.text, case.output, case.right) for case in failed[:FAILURES_SHOWN]]
    if not lines:
        return "All of them passed."
    return "\n".join(
        [
            f"The first {FAILURES_SHOWN} failures of each category; `python -m model cases` shows all of them.",
            "",
            "| category | text | answer | a right one |",
            "|---|---|---|---|",
            *lines,
        ]
    )


def _outputs(config: Config, result: TestResult) -> list[str]:
    """What it made of a test set; of a language model, which makes nothing of one, how it is asked."""
    if isinstance(config.model, LanguageModelConfig):
        return [_use(config)]
    if isinstance(config.model, ClassifierConfig):
        return [_wrong_labels(result)]
    return [_worst(result), _examples(result)]


def _use(config: Config) -> str:
    return f'## Use\n\n`python -m model generate checkpoints/{config.name} "The film" --temperature 0.8 --top-k 40`'


def _wrong_labels(result: TestResult) -> str:
    wrong = [(row, output) for row, output in zip(result.rows, result.outputs, strict=True) if row.left != output]
    lines = [f"- {row.left}, called {output}: {row.right[:200]} ..." for row, output in wrong[:N_EXAMPLES]]
    return "\n".join([f"## Errors: the first of {result.name}", "", *lines])


def _worst(result: TestResult) -> str:
    """The translations of lowest chrF."""
    worst = worst_sentences(result, N_EXAMPLES, WORST_AMONG)
    return "\n".join(
        [
            f"## Errors: the worst of the first {min(len(result.rows), WORST_AMONG):,} of {result.name}",
            "",
            "By sentence chrF, which also punishes a right translation in other words.",
            "",
            *_pairs(result, worst),
        ]
    )


def _examples(result: TestResult) -> str:
    rows = range(min(N_EXAMPLES, len(result.rows)))
    return "\n".join([f"## Examples: the first of {result.name}", "", *_pairs(result, rows)])


def _pairs(result: TestResult, indices: Iterable[int]) -> list[str]:
    rows = [_row(result.rows[i].left, result.outputs[i], result.rows[i].right) for i in indices]
    return ["| source | translation | reference |", "|---|---|---|", *rows]


def _words(category: str) -> str:
    return category.replace("_", " ")


def _row(*cells: str) -> str:
    """A row of a table, whatever its cells hold."""
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
    return shown.replace("|", "\\|").replace("\n", " ")
