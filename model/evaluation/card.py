"""The model card, written from the files of a model's directory as Markdown that the Hugging Face hub reads too."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from model.config import ClassifierConfig, Config, EmbedderConfig, LanguageModelConfig, ModelConfig, RecurrentConfig
from model.evaluation.cases import CaseResult
from model.licences import terms_of, without_commerce
from model.recipe import Recipe

TEMPLATE = Path(__file__).with_name("card.md")
CASES = "cases"
"""Key in the scores, beside the test sets, of the share of passed cases by kind."""
KINDS = "kinds"
"""Key in the scores, beside the test sets, of the BLEU of each kind of text, of sentences held out of training."""
FAILURES_SHOWN = 2
"""Failed cases shown of each kind."""
MAX_SHOWN_CHARACTERS = 160
"""Most characters of a text in a table."""
METRICS = {
    "bleu": "BLEU",
    "bleu_of_characters": "BLEU of characters",
    "chrf": "chrF",
    "accuracy": "accuracy, %",
    "calibration_error": "calibration error, %",
    "negative_log_likelihood": "negative log-likelihood, nats",
    "perplexity": "perplexity of a token",
    "bits_per_byte": "bits per byte",
}
TASKS = {
    "translation": ("translation", "translate", "Hello!"),
    "classification": ("text-classification", "classify", "A good film."),
    "language_model": ("text-generation", "generate", "The film"),
}
"""By task: its name on the hub, the command, and an example."""
FIRST_WORDS = {"fr": "Bonjour !", "de": "Hallo!", "ru": "Привет!", "ja": "こんにちは。"}

ADDRESS = {
    "fr": " and forms of address (tu or vous)",
    "de": " and forms of address (du or Sie)",
    "ru": ", forms of address (ты or вы) and the gender of who speaks",
    "ja": " and how polite it is (だ or です)",
}
"""Other features that may change from sentence to sentence, by target language."""


def model_card(
    config: Config,
    recipe: Recipe,
    training: Mapping[str, Any],
    evaluation: Mapping[str, Mapping[str, float]],
    n_parameters: int,
    cases: Sequence[CaseResult] = (),
) -> str:
    """Write the card: use, scores, licences, training, limits, failures.

    Args:
        training: content of the checkpoint's training.json.
        evaluation: scores by test set, at least one, and by kind of case.
        cases: results of the suite that fits the model, if there is one.
    """
    task = "translation" if config.model.task == "recurrent_translation" else config.model.task
    tag, command, example = TASKS[task]
    tests = {name: scores for name, scores in evaluation.items() if name not in (CASES, KINDS)}
    licences: dict[str, str] = training.get("licences") or recipe.licences()
    card = ModelCard.from_template(
        _metadata(config, recipe, tag, tests),
        template_path=str(TEMPLATE),
        config=config,
        recipe=recipe,
        task=task,
        built=_built(config.model, n_parameters),
        command=command,
        example=FIRST_WORDS.get(getattr(config.model, "source", ""), example),
        scores=_scores(tests),
        is_restricted=bool(without_commerce(licences)),
        licences=_licences(licences),
        address=ADDRESS.get(getattr(config.model, "target", ""), ""),
        kinds=_kinds(evaluation.get(KINDS, {})),
        rates=_rates(evaluation.get(CASES, {})),
        failures=_failures(cases),
        **{name: fact for name, fact in training.items() if name != "licences"},
    )
    return f"{str(card).rstrip()}\n"


def _metadata(config: Config, recipe: Recipe, tag: str, tests: Mapping[str, Mapping[str, float]]) -> ModelCardData:
    model = config.model
    languages = [str(getattr(model, side)) for side in ("source", "target") if hasattr(model, side)] or ["en"]
    hubs = {source.hub.path for source in recipe.data.train if source.hub is not None}
    results = [
        EvalResult(tag, name, name, metric, score, metric_name=METRICS[metric])
        for name, scores in tests.items()
        for metric, score in scores.items()
    ]
    return ModelCardData(
        model_name=config.name,
        language=languages,
        license="other",
        license_name="as-the-training-data",
        license_link="README.md#training-data",
        pipeline_tag=tag,
        datasets=sorted(hubs) or None,
        metrics=list(dict.fromkeys(metric for scores in tests.values() for metric in scores)),
        eval_results=results,
    )


def _built(model: ModelConfig, n_parameters: int) -> str:
    kind = "recurrent network" if isinstance(model, RecurrentConfig) else "Transformer"
    return f"A {kind} of {n_parameters / 1e6:.1f} million parameters: {_layers(model)}, {model.vocab_size:,} pieces."


def _layers(model: ModelConfig) -> str:
    if isinstance(model, RecurrentConfig):
        form = model.attention.replace("_", " the ")
        attention = "without attention" if form == "none" else f"with additive attention {form}"
        return (
            f"{model.n_encoder_layers} bidirectional encoder and {model.n_decoder_layers} decoder layers of "
            f"{model.cell.upper()} cells {attention}, d_model {model.d_model}"
        )
    if isinstance(model, LanguageModelConfig):
        layers = f"{model.n_decoder_layers} decoder layers without an encoder"
    elif isinstance(model, ClassifierConfig):
        of_what = "states" if model.pools_states else "per-token logits"
        pooling = model.pooling.removesuffix("_states")
        layers = f"{model.n_encoder_layers} encoder layers, {pooling} pooling of {of_what}"
    elif isinstance(model, EmbedderConfig):
        layers = f"{model.n_encoder_layers} encoder layers, {' and '.join(model.pooling)} pooling"
    else:
        layers = f"{model.n_encoder_layers} encoder and {model.n_decoder_layers} decoder layers"
    return f"{layers}, d_model {model.d_model}, {model.n_heads} heads, feed-forward {model.d_ff}, {model.norm}-norm"


def _scores(tests: Mapping[str, Mapping[str, float]]) -> str:
    metrics = next(iter(tests.values()))
    rows = ([name, *(f"{score:.4g}" for score in scores.values())] for name, scores in tests.items())
    return _table(["test set", *(METRICS[metric] for metric in metrics)], rows)


def _licences(licences: Mapping[str, str]) -> str:
    corpora: dict[str, list[str]] = {}
    for file, licence in licences.items():
        corpora.setdefault(licence, []).append(re.sub(r"^\w+/(train/)?|\.tsv(\.xz)?$", "", file))
    rows = (
        [licence, ", ".join(files), "; ".join(terms_of(licence)) or "not known"] for licence, files in corpora.items()
    )
    return _table(["licence", "corpora", "what it asks of you"], rows)


def _rates(rates: Mapping[str, float]) -> str:
    rows = [[_words(kind), f"{rate:.0f}"] for kind, rate in rates.items()]
    return _table(["kind of case", "passed, %"], rows) if rows else ""


def _kinds(scores: Mapping[str, float]) -> str:
    return (
        _table(["kind of text", "BLEU"], [[kind, f"{score:.1f}"] for kind, score in scores.items()]) if scores else ""
    )


def _failures(results: Sequence[CaseResult]) -> str:
    rows = []
    for kind in dict.fromkeys(result.category for result in results):
        failed = [result for result in results if result.category == kind and result.problems]
        rows += [[_words(kind), case.text, case.output, case.right] for case in failed[:FAILURES_SHOWN]]
    return _table(["kind", "text", "answer", "a right one"], rows) if rows else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    shown = text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]} ..."
    return shown.replace("|", "\\|").replace("\n", " ")
