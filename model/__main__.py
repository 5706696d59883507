"""`python -m model COMMAND`: import, list, train, evaluate, confidence, card, cases, sentences, faithfulness, align,
translate, classify, generate, embed."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from manifest.file import read_manifest, write_manifest
from manifest.layout import MANIFEST
from manifest.schema import Confidence
from model.alignment.heads import CORPUS_ROWS, compare_heads
from model.alignment.word_aligner import AlignmentError
from model.checkpoint import (
    ALIGNMENT,
    CARD,
    CONFIDENCE,
    EVALUATION,
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    load_training,
)
from model.config import ConfigError, EmbedderConfig
from model.data import DataError, load_rows
from model.decoding.generation import GenerationError, Sampler
from model.decoding.generation import generate as generate_text
from model.embedding import cross_attention_outputs, encoder_states, text_embeddings
from model.evaluation.card import KINDS, model_card
from model.evaluation.cases import CaseResult, SuiteError, answers_of, pass_counts, pass_rates, run_suite, suite_for
from model.evaluation.confidence import greedy, measure_confidence, served
from model.evaluation.faithfulness import faithfulness as evidence_faithfulness
from model.evaluation.scoring import classify as classify_texts
from model.evaluation.scoring import evaluate as evaluate_checkpoint
from model.evaluation.scoring import evaluate_kinds, score_translations
from model.evaluation.scoring import translate as translate_texts
from model.evaluation.sentences import sentences_for
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.inventory import CHECKPOINT, Listed, default_directories, inventory
from model.networks.translator import TranslationModel
from model.pooling import normalized
from model.progress import progress_shown
from model.recipe import Recipe, load_experiment, load_recipe

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
console = Console()
errors = Console(stderr=True)

DataDir = Annotated[Path | None, typer.Option(help="Directory of the TSV corpora; by default they are downloaded.")]
CheckpointDir = Annotated[Path, typer.Argument(help="Checkpoint or artifact, e.g. artifacts/translate-en-fr.")]
EmbeddingSource = Literal["encoder", "cross-attention"]
Pooling = Literal["mean", "none"]
Texts = Annotated[list[str] | None, typer.Argument(help="Texts; by default the lines of standard input.")]


@app.command()
def train(
    model: Annotated[Path, typer.Argument(help="Directory with config.yaml and recipe.yaml.")],
    data: DataDir = None,
    run: Annotated[Path | None, typer.Option(help="Directory for the results; default runs/NAME.")] = None,
    start: Annotated[Path | None, typer.Option(help="Checkpoint whose weights and tokenizer to start with.")] = None,
    new_vocabulary: Annotated[bool, typer.Option(help="With --start, learn a new tokenizer.")] = False,
    start_share: Annotated[float, typer.Option(min=0, max=1, help="Weight of --start in the final model.")] = 0.0,
    commercial: Annotated[
        bool, typer.Option("--commercial", help="Leave out corpora that are not for commercial use.")
    ] = False,
) -> None:
    """Train a model by its recipe. A run that was killed resumes from its last saved step.

    The result is runs/NAME/checkpoint, with curves for TensorBoard beside it.

    With --start, training continues from a checkpoint, on the corpora that the recipe names: the same ones, or your
    own. With --new-vocabulary they may be in other languages; pieces that the checkpoint knows keep their embeddings.
    With --start-share the final weights are a mixture of those before and after, which is often better than both.

    With --commercial, corpora are left out whose licence forbids commercial use, is for research, or is missing.
    """
    from model.training.train import train as train_model  # Lightning takes seconds to import.

    experiment = load_experiment(model)
    run = run or Path("runs") / experiment.name
    train_model(experiment, data, run, run / CHECKPOINT, start, new_vocabulary, start_share, commercial)


@app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="Directory, archive, or Hugging Face id (owner/name).")],
    checkpoint: Annotated[Path, typer.Argument(help="Directory to write, for `python -m export`.")],
    name: Annotated[str | None, typer.Option(help="Name of the model; by default that of the source.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hugging Face id.")] = None,
    language: Annotated[list[str] | None, typer.Option("--source", help="Language that the model reads.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="Language that the model writes.")] = None,
    prompt: Annotated[list[str] | None, typer.Option(help="NAME=TEXT, text to put before texts.")] = None,
    dimensions: Annotated[
        str | None, typer.Option(help="Numbers of dimensions to which embeddings may be cut: 256,512.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the import of another model too.")] = False,
) -> None:
    """Import a model that was trained elsewhere as a checkpoint (docs/bring-your-model.md)."""
    for pair in prompt or []:
        if "=" not in pair[1:]:
            raise typer.BadParameter(f"{pair!r} must be NAME=TEXT", param_hint="--prompt")
    prompts = {name: text for name, _, text in (pair.partition("=") for pair in prompt or [])}
    numbers = dimensions.split(",") if dimensions else []
    if not all(number.strip().isdecimal() for number in numbers):
        raise typer.BadParameter(f"{dimensions!r} must be numbers with commas between them", param_hint="--dimensions")
    options = Options(name, tuple(language or ()), tuple(target or ()), prompts, tuple(map(int, numbers)))
    try:
        with progress_shown():
            imported = import_model(source, checkpoint, options, revision, overwrite)
    except ModelImportError as error:
        raise ModelImportError(f"cannot import {source}: {error}") from error
    for note in imported.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{checkpoint}: {imported.config.description}", markup=False, highlight=False, soft_wrap=True)


@app.command("list")
def list_(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(help="Models, or folders of them; by default artifacts and runs.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List artifacts and checkpoints: what they do, how large they are, and where they came from."""
    listed = inventory(directories or default_directories())
    if as_json:
        print(json.dumps([asdict(entry) for entry in listed], indent=2, ensure_ascii=False))
        return
    header = ["model", "does", "parameters", "size", "precision", "nearness", "licence", "source", "directory"]
    rows = [_cells(entry) for entry in listed if entry.problem is None]
    table = Table(*header)
    for row in rows:
        table.add_row(*map(escape, row))
    if not console.is_terminal:
        print("\n".join("\t".join(row) for row in [header, *rows]))
    elif console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width:
        console.print(table)
    else:  # cut cells would hide names and directories
        for name, *cells in rows:
            facts = (f"{title} {cell}" for title, cell in zip(header[1:], cells, strict=True) if cell)
            console.print(f"{name}: {', '.join(facts)}", markup=False, highlight=False)
    for entry in listed:
        if entry.problem is not None:
            console.print(f"{entry.directory}: {entry.problem}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def evaluate(checkpoint: CheckpointDir, data: DataDir = None) -> None:
    """Score a checkpoint on its test sets and failure cases; write evaluation.json and the model card beside it."""
    loaded, recipe = load_checkpoint(checkpoint), load_recipe(checkpoint)
    results = evaluate_checkpoint(loaded, recipe.data.test, data)
    if not results:
        raise DataError(f"`data.test` in the recipe of {checkpoint} is empty; evaluation needs a test set")
    table = Table("test set", "rows", *results[0].scores)
    for result in results:
        table.add_row(result.name, str(result.n_rows), *(f"{score:.2f}" for score in result.scores.values()))
    console.print(table)
    for metric, signature in results[0].signatures.items():
        console.print(f"{metric}: {signature}")
    case_results = _run_cases(loaded)
    scores = {result.name: result.scores for result in results}
    kinds = evaluate_kinds(loaded, recipe.data, data)
    if kinds:
        table = Table("kind of text", "rows", *results[0].scores)
        for kind, result in kinds.items():
            table.add_row(kind, str(result.n_rows), *(f"{score:.2f}" for score in result.scores.values()))
        console.print(table)
        scores[KINDS] = {kind: next(iter(result.scores.values())) for kind, result in kinds.items()}
    if case_results:
        console.print(_pass_table(case_results))
        scores["cases"] = pass_rates(case_results)
    _write_evaluation(checkpoint, scores, _measured_confidence(loaded, recipe, data))
    _write_card(checkpoint, replace(loaded, evaluation=scores), recipe, case_results)


@app.command()
def confidence(
    checkpoint: CheckpointDir,
    data: DataDir = None,
    url: Annotated[
        str | None, typer.Option(help="Address of a service that has the model, whose translations are calibrated.")
    ] = None,
) -> None:
    """Calibrate the confidence of a translator on its test sets, as `evaluate` does; write it into evaluation.json, and
    into the manifest if this is an artifact.

    A service searches with a beam, which makes scores higher than those of `evaluate`, which searches greedily. So
    calibrate an artifact that is served by --url.
    """
    loaded = load_checkpoint(checkpoint)
    measured = _measured_confidence(loaded, load_recipe(checkpoint), data, url)
    if measured is None:
        raise DataError(f"{checkpoint} does not translate, or its recipe has no `data.test`: nothing can be calibrated")
    _write_evaluation(checkpoint, loaded.evaluation, measured)
    if (checkpoint / MANIFEST).is_file():
        write_manifest(read_manifest(checkpoint).model_copy(update={"confidence": measured}), checkpoint)


@app.command()
def card(checkpoint: CheckpointDir) -> None:
    """Write the card of an evaluated model again, from its recipe and its scores."""
    loaded = load_checkpoint(checkpoint)
    if not loaded.evaluation:
        raise CheckpointError(f"{EVALUATION} is missing in {checkpoint}: run `python -m model evaluate` first")
    _write_card(checkpoint, loaded, load_recipe(checkpoint), _run_cases(loaded))


@app.command()
def cases(checkpoint: CheckpointDir) -> None:
    """Show the failure cases (model/suites) that a checkpoint does not pass."""
    results = _run_cases(load_checkpoint(checkpoint))
    if not results:
        raise SuiteError(f"no suite in model/suites has the languages or labels of {checkpoint}")
    table = Table("category", "text", "answer", "correct answer", "problems", show_lines=True)
    for result in results:
        if result.problems:
            cells = (result.category, result.text, result.output, result.right, "\n".join(result.problems))
            table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    console.print(_pass_table(results))


@app.command()
def sentences(checkpoint: CheckpointDir) -> None:
    """Show translations of sentences that people try first (model/suites) beside right ones, and chrF over all."""
    loaded = load_checkpoint(checkpoint)
    rows = sentences_for(loaded.config.model)
    if not rows:
        raise SuiteError(f"no sentences in model/suites have the languages of {checkpoint}")
    outputs = [text for text, _ in translate_texts(loaded, [row.left for row in rows])]
    table = Table("text", "translation", "a right one", show_lines=True)
    for (text, right), output in zip(rows, outputs, strict=True):
        table.add_row(escape(text), escape(output), escape(right))
        if not console.is_terminal:
            print(f"{text}\t{output}\t{right}")
    if console.is_terminal:
        console.print(table)
    scores, _ = score_translations(
        outputs, [row.right for row in rows], str(getattr(loaded.config.model, "target", ""))
    )
    errors.print(f"chrF {scores['chrf']:.1f}", highlight=False)


@app.command()
def faithfulness(
    checkpoint: CheckpointDir,
    data: DataDir = None,
    texts: Annotated[int, typer.Option(help="Texts of each test set.")] = 1000,
    tokens: Annotated[int, typer.Option(help="Tokens removed from each text.")] = 3,
    longest: Annotated[int, typer.Option(help="Most tokens of a text; longer ones are skipped.")] = 64,
) -> None:
    """Show how much a classifier's answer changes without the tokens with most evidence, and without random ones."""
    loaded = load_checkpoint(checkpoint)
    table = Table("test set", "texts", "by evidence, points", "at random, points", "ratio")
    for source in load_recipe(checkpoint).data.test:
        measured = evidence_faithfulness(loaded, [row.right for row in load_rows(source, data)], texts, tokens, longest)
        numbers = (f"{number:.2f}" for number in (measured.by_evidence, measured.at_random, measured.ratio))
        table.add_row(source.file, str(measured.n_texts), *numbers)
    console.print(table)


@app.command()
def align(
    checkpoint: CheckpointDir,
    data: DataDir = None,
    pairs: Annotated[int, typer.Option(help="Number of sentence pairs to compare heads on.")] = 1000,
    rows: Annotated[int, typer.Option(help="Number of pairs that the aligner reads per corpus.")] = CORPUS_ROWS,
) -> None:
    """Choose the heads of a translator that align words; write alignment.json beside it."""
    comparison = compare_heads(load_checkpoint(checkpoint), load_recipe(checkpoint).data, data, pairs, rows)
    table = Table("layer", "heads", "row", "precision", "recall", "AER")
    for candidate in comparison.candidates:
        choice = candidate.alignment
        scores = (f"{score:.1f}" for score in (candidate.precision, candidate.recall, candidate.aer))
        row = "read" if choice.next_row else "produced"
        table.add_row(str(choice.layer), " ".join(map(str, choice.heads)), row, *scores)
    console.print(table)
    (checkpoint / ALIGNMENT).write_text(json.dumps(comparison.report(), indent=2) + "\n", encoding="utf-8")


@app.command()
def translate(
    checkpoint: CheckpointDir,
    texts: Texts = None,
    source: Annotated[str | None, typer.Option(help="Language code, as the model has it.")] = None,
    target: Annotated[str | None, typer.Option(help="Language code, as the model has it.")] = None,
) -> None:
    """Translate sentences with a checkpoint."""
    loaded = load_checkpoint(checkpoint)
    for text, _ in translate_texts(loaded, list(texts or _lines()), source=source, target=target):
        print(text)


@app.command()
def classify(checkpoint: CheckpointDir, texts: Texts = None) -> None:
    """Label texts with a checkpoint."""
    for scores in classify_texts(load_checkpoint(checkpoint), list(texts or _lines())):
        label = max(scores, key=scores.__getitem__)
        print(f"{label}\t{scores[label]:.4f}")


@app.command()
def generate(
    checkpoint: CheckpointDir,
    text: Annotated[str, typer.Argument(help="Text to continue.")] = "",
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens to generate.")] = 50,
    temperature: Annotated[float, typer.Option(help="Sampling temperature; 0 takes the most probable token.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Number of tokens to sample from; by default all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of sampling.")] = 1,
) -> None:
    """Continue a text with a language model."""
    print(generate_text(load_checkpoint(checkpoint), text, max_tokens, Sampler(temperature, top_k, seed)))


@app.command()
def embed(
    checkpoint: CheckpointDir,
    texts: Texts = None,
    of: Annotated[
        EmbeddingSource, typer.Option(help="States to embed; cross-attention is of its translation.")
    ] = "encoder",
    pooling: Annotated[
        Pooling | None,
        typer.Option(
            help="One vector per text (mean) or per token (none); by default the model's own pooling, or mean."
        ),
    ] = None,
    layer: Annotated[int, typer.Option(help="Decoder layer of cross-attention; -1 is the last.")] = -1,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1; by default as the model does, or yes.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="Name of a prompt of the model to put before texts.")] = None,
) -> None:
    """Embed texts (sentences, for a translator), one JSON object per line."""
    asked, loaded = list(texts or _lines()), load_checkpoint(checkpoint)
    embedder = loaded.config.model if isinstance(loaded.config.model, EmbedderConfig) else None
    if normalize is None:
        normalize = embedder.normalize if embedder else True
    if prompt is not None or (embedder and of == "encoder" and pooling is None):
        if of != "encoder" or pooling is not None:
            raise typer.BadParameter("it cannot be used with --of cross-attention or --pooling", param_hint="--prompt")
        for text, vector in zip(asked, text_embeddings(loaded, asked, prompt), strict=True):
            numbers = (normalized(vector) if normalize else vector).tolist()
            print(json.dumps({"text": text, "embedding": numbers}, ensure_ascii=False))
        return
    embedded = encoder_states(loaded, asked) if of == "encoder" else cross_attention_outputs(loaded, asked, layer)
    for text, result in zip(asked, embedded, strict=True):
        vectors = result.vectors if pooling == "none" else result.mean()
        numbers = (normalized(vectors) if normalize else vectors).tolist()
        line: dict[str, object] = {"text": text} if of == "encoder" else {"text": text, "translation": result.text}
        line |= {"tokens": result.tokens, "embeddings": numbers} if pooling == "none" else {"embedding": numbers}
        print(json.dumps(line, ensure_ascii=False))


def _measured_confidence(
    checkpoint: Checkpoint, recipe: Recipe, data: Path | None, url: str | None = None
) -> Confidence | None:
    """Return the confidence of a translator with test sets, and show it."""
    if not isinstance(checkpoint.model, TranslationModel) or not recipe.data.test:
        return None
    translations_of = partial(greedy, checkpoint) if url is None else partial(served, url.rstrip("/"), checkpoint)
    measured = measure_confidence(translations_of, recipe.data.test, data)
    table = Table("score", "confidence")
    for score, value in measured.points:
        table.add_row(f"{score:.2f}", f"{value:.2f}")
    console.print(table)
    console.print(f"confidence: calibration error {measured.error:.1f} % over {measured.sentences} sentences")
    return measured


def _write_evaluation(
    directory: Path, scores: dict[str, dict[str, float]], confidence: Confidence | None = None
) -> None:
    content = scores | ({CONFIDENCE: confidence.model_dump()} if confidence is not None else {})
    (directory / EVALUATION).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_card(directory: Path, checkpoint: Checkpoint, recipe: Recipe, cases: list[CaseResult]) -> None:
    n_parameters = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    facts = load_training(directory)
    text = model_card(checkpoint.config, recipe, facts, checkpoint.evaluation, n_parameters, cases)
    (directory / CARD).write_text(text, encoding="utf-8")


def _run_cases(checkpoint: Checkpoint) -> list[CaseResult]:
    suite = suite_for(checkpoint.config.model)
    return run_suite(suite, answers_of(checkpoint)) if suite else []


def _pass_table(results: list[CaseResult]) -> Table:
    table = Table("category", "cases", "passed, %")
    for category, (passed, n) in pass_counts(results).items():
        table.add_row(category, str(n), f"{100 * passed / n:.1f}")
    return table


def _cells(model: Listed) -> list[str]:
    parameters = f"{model.parameters / 1e6:,.1f} M" if model.parameters else ""
    home_made = ("of its training data", "trained with attend")
    licence, source = (model.licence or "not named", model.source) if model.source else home_made
    texts = (model.precision, model.nearness, licence, source, model.directory)
    return [model.name, model.does or "", parameters, f"{model.bytes / 1e6:,.1f} MB", *(text or "" for text in texts)]


def _lines() -> Iterable[str]:
    return (line.rstrip("\n") for line in sys.stdin)


USERS_ERRORS = (
    AlignmentError,
    CheckpointError,
    ConfigError,
    DataError,
    GenerationError,
    ModelImportError,
    SuiteError,
)


@contextmanager
def reporting_errors() -> Iterator[None]:
    """End the process with one sentence after an error in a configuration, corpus or checkpoint."""
    try:
        yield
    except USERS_ERRORS as error:
        errors.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    with reporting_errors():
        app()
