"""Compares a classifier of DistilBERT's size in attend over HTTP, in ONNX Runtime on the same graph, and in
transformers.

All get the same texts, as many at once. ONNX Runtime gets token ids in padded batches, so the difference to it is what
server, tokenizer, queue and processes of attend take. Passes are in turns.
"""

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
import transformers
from rich.console import Console
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from benchmarks.engines import ATTEND, TRANSFORMERS
from benchmarks.results import Record, command, save
from benchmarks.servers import Server, Variant
from benchmarks.texts import load_sentences
from benchmarks.workspace import ROOT, made_from, workspace
from export.artifact import write
from model.checkpoint import load_checkpoint
from model.importing.families import import_model
from model.importing.imported import Options
from service.base.artifact import read_artifacts
from service.base.cores import usable_cores
from service.runner.arrays import padded
from service.runner.provider import Provider
from service.runner.weights import load_session

NAME, PART = "distilbert-sst-2", "imports_classifier"
VOCAB_SIZE, SEED = 30_522, 20
TEXTS, TEXTS_PER_REQUEST, CONNECTIONS = 512, 32, 4
LOGITS = ["logits"]

Pass = Callable[[list[list[str]]], object]
"""Function that classifies the texts of all requests."""


def measure(data: Path | None, quick: bool, console: Console) -> None:
    """Measure texts per second of each engine, and save them."""
    texts = [sentence.text for sentence in load_sentences(data, TEXTS // 4 if quick else TEXTS)]
    requests = [texts[start : start + TEXTS_PER_REQUEST] for start in range(0, len(texts), TEXTS_PER_REQUEST)]
    directory = made_from([Path(__file__)], workspace("models", "transformers") / NAME, save_random_distilbert)
    sources = [Path(__file__), *sorted((ROOT / "export").glob("*.py")), *sorted((ROOT / "model").rglob("*.py"))]
    artifacts = made_from(sources, workspace("models", "attend") / f"{NAME}.fp32", lambda to: _export(directory, to))
    with _attend(artifacts) as attend:
        passes: dict[str, Pass] = {ATTEND: attend, "ONNX Runtime": _onnxruntime(artifacts, requests)}
        passes[TRANSFORMERS] = _transformers(directory)
        seconds: dict[str, list[float]] = {name: [] for name in passes}
        for turn in range(2 if quick else 6):  # the first is a warm-up
            for name, classify in passes.items():
                began = time.perf_counter()
                classify(requests)
                if turn > 0:
                    seconds[name].append(time.perf_counter() - began)
    records: list[Record] = [
        {
            "engine": name,
            "texts_per_s": len(texts) / statistics.median(of_engine),
            "seconds": of_engine,
            "command": command(),
        }
        for name, of_engine in seconds.items()
    ]
    for record in records:
        console.print(f"{NAME}: {record['engine']} {record['texts_per_s']:.1f} texts/s")
    save(PART, ["engine"], records, quick)


def save_random_distilbert(directory: Path) -> None:
    """Write weights, configuration and tokenizer. A text has its words' characters as tokens, as many as a real
    vocabulary with few of its words would give."""
    torch.manual_seed(SEED)
    config = transformers.DistilBertConfig(vocab_size=VOCAB_SIZE)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(directory)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for sentence in load_sentences(None, None) for word in _words(sentence.text)})
    letters = [f"{joined}{letter}" for letter in sorted(set("".join(words))) for joined in ("", "##")]
    known = list(dict.fromkeys([*special, *words, *letters]))
    made_up = [f"[unused{i}]" for i in range(VOCAB_SIZE - len(known))]
    (directory / "vocab.txt").write_text("".join(f"{token}\n" for token in [*known, *made_up]), encoding="utf-8")
    settings = {"do_lower_case": True, "model_max_length": 512}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def _words(text: str) -> list[str]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def _export(directory: Path, artifacts: Path) -> None:
    checkpoint = workspace("models") / NAME
    shutil.rmtree(checkpoint, ignore_errors=True)
    shutil.rmtree(artifacts / NAME, ignore_errors=True)
    import_model(str(directory), checkpoint, Options(name=NAME))
    (artifacts / NAME).mkdir()
    write(checkpoint, load_checkpoint(checkpoint), "fp32", artifacts / NAME)


@contextmanager
def _attend(artifacts: Path) -> Iterator[Pass]:
    environment = {**os.environ, "ATTEND_ARTIFACTS": str(artifacts), "ATTEND_PROVIDER": "cpu"}

    def started(port: int) -> list[str]:
        return ["env", f"ATTEND_PORT={port}", sys.executable, "-m", "service"]

    variant = Variant(ATTEND, "defaults", started, environment, "/health/ready", lambda text: {"text": text}, list)
    with (
        Server(variant) as server,
        httpx.Client(base_url=f"http://{server.address}", timeout=600) as client,
        ThreadPoolExecutor(CONNECTIONS) as connections,
    ):

        def classify(texts: list[str]) -> Any:
            return client.post("/classify", json={"text": texts}).raise_for_status().json()

        yield lambda requests: list(connections.map(classify, requests))


def _onnxruntime(artifacts: Path, requests: list[list[str]]) -> Pass:
    """Run one thread per core, each with its own batch, like the workers of attend."""
    (artifact,) = read_artifacts(artifacts)
    session = load_session(artifact, Provider("cpu", 1), "classifier.onnx")
    tokenizer = Tokenizer.from_file(str(artifact.path("tokenizer.json")))
    pad = artifact.manifest.special_tokens.pad
    batches = [padded([encoding.ids for encoding in tokenizer.encode_batch(texts)], pad) for texts in requests]
    threads = ThreadPoolExecutor(usable_cores())

    def run(batch: tuple[Any, Any]) -> Any:
        return session.run(LOGITS, dict(zip(("input_ids", "lengths"), batch, strict=True)))

    return lambda _: np.concatenate([logits for (logits,) in threads.map(run, batches)])


def _transformers(directory: Path) -> Pass:
    torch.set_num_threads(usable_cores())
    model: Any = transformers.DistilBertForSequenceClassification.from_pretrained(directory)
    tokenizer: Any = transformers.BertTokenizer.from_pretrained(directory)

    def classify(requests: list[list[str]]) -> list[Any]:
        with torch.inference_mode():
            return [model(**_two(tokenizer(texts, return_tensors="pt", padding=True))).logits for texts in requests]

    return classify


def _two(encoded: Any) -> dict[str, Any]:
    return {name: encoded[name] for name in ("input_ids", "attention_mask")}
