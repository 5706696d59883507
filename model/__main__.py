"""`python -m model train | compress | evaluate | cases | align | translate | classify | generate | embed |
embed-quality | dictionary | other-words | other-names`."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from model.alignment.heads import CORPUS_ROWS, compare_heads
from model.alignment.word_aligner import AlignmentError
from model.augmentation.edict import EDICT, edict_pairs
from model.augmentation.mueller import mueller_pairs
from model.augmentation.other_names import other_name_rows
from model.checkpoint import (
    ALIGNMENT,
    CARD,
    EVALUATION,
    WEIGHTS,
    Checkpoint,
    CheckpointError,
    compress_checkpoint,
    load_checkpoint,
    load_training,
)
from model.config import ConfigError, Part, load_config
from model.data import DataError, read_tsv, write_tsv
from model.decoding.generation import GenerationError, Sampler
from model.decoding.generation import generate as generate_text
from model.embedding import cross_attention_outputs, encoder_states, normalized
from model.evaluation.card import model_card
from model.evaluation.cases import (
    CaseResult,
    SuiteError,
    answers_of,
    pass_counts,
    pass_rates,
    run_suite,
    suite_for,
)
from model.evaluation.embedding_quality import PAIRS, embedding_report
from model.evaluation.scoring import classify as classify_texts
from model.evaluation.scoring import evaluate as evaluate_checkpoint
from model.evaluation.scoring import translate as translate_texts

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
console = Console()

DataDir = Annotated[Path | None, typer.Option(help="Directory of the TSV corpora; without it they come from a hub.")]
CheckpointDir = Annotated[Path, typer.Argument(help="Checkpoint directory, as checkpoints/translate-en-fr.")]
MadeCorpus = Annotated[Path, typer.Option(help="English first, .tsv.xz; a file there is replaced.")]
Of = Literal["encoder", "cross-attention"]
Pooling = Literal["mean", "none"]
Texts = Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")]


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="Configuration, as model/configs/translate-en-fr.yaml.")],
    data: DataDir = None,
    run: Annotated[Path | None, typer.Option(help="Where checkpoints and curves go; default runs/NAME.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the result goes; default checkpoints/NAME.")] = None,
    start: Annotated[Path | None, typer.Option(help="Begin with a checkpoint's weights and tokenizer.")] = None,
    new_vocabulary: Annotated[bool, typer.Option(help="Of --start take the weights, but learn a tokenizer.")] = False,
    start_share: Annotated[float, typer.Option(min=0, max=1, help="Share of --start in the final weights.")] = 0.0,
    only: Annotated[Part | None, typer.Option(help="Train this part of a classifier, keep those of --start.")] = None,
) -> None:
    """Train a model. Killed and started again, it goes on from its last checkpoint.

    With --start it goes on with a model that was trained before, on whatever the configuration names: more of the
    same corpora, or a user's own. With --new-vocabulary this may be of other languages: of its pieces, those that the
    checkpoint has begin with its embeddings, others, where `data.pivot` is given, with those of their translations.
    With --start-share the final weights are a mixture of those before and after, which is often better than both.
    With --only one part of a classifier is trained: n-grams or regions anew, its encoder further.
    """
    from model.training.train import train as train_model  # Lightning takes seconds to import.

    loaded = load_config(config)
    run, out = run or Path("runs") / loaded.name, out or Path("checkpoints") / loaded.name
    train_model(loaded, data, run, out, start, new_vocabulary, start_share, only)


@app.command()
def compress(checkpoint: CheckpointDir) -> None:
    """Keep the weights of a checkpoint in int8, at half the size of float16; evaluate and export it after that."""
    compress_checkpoint(checkpoint)
    console.print(f"{checkpoint / WEIGHTS}: {(checkpoint / WEIGHTS).stat().st_size / 1e6:.1f} MB")


@app.command()
def evaluate(checkpoint: CheckpointDir, data: DataDir = None) -> None:
    """Score a checkpoint on its test sets and its failure cases; write evaluation.json and the model card beside it."""
    loaded = load_checkpoint(checkpoint)
    results = evaluate_checkpoint(loaded, loaded.config.data.test, data)
    if not results:
        raise DataError(f"the configuration of {checkpoint} names no test set")
    table = Table("test set", "rows", *results[0].scores)
    for result in results:
        table.add_row(result.name, str(len(result.rows)), *(f"{score:.2f}" for score in result.scores.values()))
    console.print(table)
    for metric, signature in results[0].signatures.items():
        console.print(f"{metric}: {signature}")
    case_results = _run_cases(loaded)
    scores = {result.name: result.scores for result in results}
    if case_results:
        console.print(_pass_table(case_results))
        scores["cases"] = pass_rates(case_results)
    (checkpoint / EVALUATION).write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    n_parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    training = load_training(checkpoint)
    card = model_card(loaded.config, training, results, n_parameters, case_results, loaded.is_compressed)
    (checkpoint / CARD).write_text(card, encoding="utf-8")


@app.command()
def cases(checkpoint: CheckpointDir) -> None:
    """Show which failure cases a checkpoint does not pass: those of its direction or of its labels (model/suites)."""
    results = _run_cases(load_checkpoint(checkpoint))
    if not results:
        raise SuiteError(f"there is no suite for {checkpoint}")
    table = Table("category", "text", "answer", "a right one", "lacks", show_lines=True)
    for result in results:
        if result.problems:
            cells = (result.category, result.text, result.output, result.right, "\n".join(result.problems))
            table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    console.print(_pass_table(results))


@app.command()
def align(
    checkpoint: CheckpointDir,
    data: DataDir = None,
    pairs: Annotated[int, typer.Option(help="Sentence pairs on which heads are compared.")] = 1000,
    rows: Annotated[int, typer.Option(help="Pairs of each training corpus that the aligner reads.")] = CORPUS_ROWS,
) -> None:
    """Choose the heads of a translator that align words; write alignment.json beside it."""
    comparison = compare_heads(load_checkpoint(checkpoint), data, pairs, rows)
    table = Table("layer", "heads", "row", "precision", "recall", "AER")
    for candidate in comparison.candidates:
        choice = candidate.alignment
        scores = (f"{score:.1f}" for score in (candidate.precision, candidate.recall, candidate.aer))
        row = "read" if choice.next_row else "produced"
        table.add_row(str(choice.layer), " ".join(map(str, choice.heads)), row, *scores)
    console.print(table)
    (checkpoint / ALIGNMENT).write_text(json.dumps(comparison.report(), indent=2) + "\n", encoding="utf-8")


@app.command()
def translate(checkpoint: CheckpointDir, texts: Texts = None) -> None:
    """Translate sentences with a checkpoint."""
    for text, _ in translate_texts(load_checkpoint(checkpoint), list(texts or _lines())):
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
    text: Annotated[str, typer.Argument(help="What is continued.")] = "",
    max_tokens: Annotated[int, typer.Option(min=1, help="Further tokens at most.")] = 50,
    temperature: Annotated[float, typer.Option(help="Of the draws; 0 takes the most probable token.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Draw from so many tokens; without it from all.")] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 1,
) -> None:
    """Continue a text with a language model."""
    print(generate_text(load_checkpoint(checkpoint), text, max_tokens, Sampler(temperature, top_k, seed)))


@app.command()
def embed(
    checkpoint: CheckpointDir,
    texts: Texts = None,
    of: Annotated[Of, typer.Option(help="What of the model; cross-attention is of its own translation.")] = "encoder",
    pooling: Annotated[Pooling, typer.Option(help="One vector for a text, or one for each token.")] = "mean",
    layer: Annotated[int, typer.Option(help="Decoder layer of cross-attention; -1 is the last.")] = -1,
    normalize: Annotated[bool, typer.Option(help="Scale each vector to length 1.")] = True,
) -> None:
    """Turn texts into vectors, one JSON object a line: sentences for a translator."""
    asked, loaded = list(texts or _lines()), load_checkpoint(checkpoint)
    found = encoder_states(loaded, asked) if of == "encoder" else cross_attention_outputs(loaded, asked, layer)
    for text, one in zip(asked, found, strict=True):
        vectors = one.mean() if pooling == "mean" else one.vectors
        numbers = (normalized(vectors) if normalize else vectors).tolist()
        line: dict[str, object] = {"text": text} if of == "encoder" else {"text": text, "translation": one.text}
        line |= {"embedding": numbers} if pooling == "mean" else {"tokens": one.tokens, "embeddings": numbers}
        print(json.dumps(line, ensure_ascii=False))


@app.command()
def embed_quality(
    checkpoint: CheckpointDir,
    data: Annotated[Path, typer.Option(help="Directory of the TSV corpora.")],
    corpus: Annotated[str, typer.Option(help="Sentences of the model's source language, and translations.")] = PAIRS,
) -> None:
    """Measure how well a translator's vectors find sentences of the same meaning; prints Markdown."""
    for line in embedding_report(load_checkpoint(checkpoint), data, corpus):
        print(line)


@app.command()
def dictionary(
    file: Annotated[Path, typer.Argument(help="mueller7.index, with mueller7.dict.dz beside it, or edict.")],
    corpora: Annotated[list[Path], typer.Argument(help="Files whose first column is English: what is common.")],
    out: MadeCorpus,
    common_only: Annotated[bool, typer.Option(help="Of edict, the words that it calls common.")] = False,
) -> None:
    """Write the words of an English-Russian dictionary, and its phrases, or those of a Japanese-English one."""
    pairs = mueller_pairs(file, corpora) if file.suffix == ".index" else edict_pairs(file, corpora, common_only)
    console.print(f"{out}: {write_tsv(out, pairs):,} pairs")


@app.command()
def other_words(
    dictionary: Annotated[
        Path, typer.Argument(help="What `python -m model dictionary` wrote of Russian, or the file edict.")
    ],
    corpora: Annotated[list[Path], typer.Argument(help="English<TAB>Russian files, or English<TAB>Japanese ones.")],
    out: MadeCorpus,
) -> None:
    """Exchange words of sentence pairs for words of a dictionary, for common ones more often."""
    rows = [row for path in corpora for row in read_tsv(path)]
    # They need the extra `words`, and only this does.
    if dictionary.name == EDICT:
        from model.augmentation.other_japanese_words import with_other_japanese_words

        pairs = with_other_japanese_words(rows, dictionary)
    else:
        from model.augmentation.other_russian_words import with_other_russian_words

        pairs = with_other_russian_words(rows, list(read_tsv(dictionary)))
    console.print(f"{out}: {write_tsv(out, pairs):,} pairs")


@app.command()
def other_names(
    dictionary: Annotated[Path, typer.Argument(help="enamdict.")],
    corpora: Annotated[list[Path], typer.Argument(help="English<TAB>Japanese files.")],
    attesting: Annotated[list[Path], typer.Option(help="English<TAB>Japanese files that tell how names are read.")],
    out: MadeCorpus,
) -> None:
    """Write Japanese names, and sentence pairs with other people and places in them."""
    console.print(f"{out}: {write_tsv(out, other_name_rows(dictionary, attesting, corpora)):,} pairs")


def _run_cases(checkpoint: Checkpoint) -> list[CaseResult]:
    suite = suite_for(checkpoint.config.model)
    return run_suite(suite, answers_of(checkpoint)) if suite else []


def _pass_table(results: list[CaseResult]) -> Table:
    table = Table("category", "cases", "passed, %")
    for category, (passed, n) in pass_counts(results).items():
        table.add_row(category, str(n), f"{100 * passed / n:.1f}")
    return table


def _lines() -> Iterable[str]:
    return (line.rstrip("\n") for line in sys.stdin)


def main() -> None:
    """Run a command; an unusable configuration, corpus or checkpoint ends it with one sentence."""
    try:
        app()
    except (AlignmentError, CheckpointError, ConfigError, DataError, GenerationError, SuiteError) as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
