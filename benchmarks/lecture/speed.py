"""Cost of each system: a training step and a decoding step, by sequence length.

Weights are random: time does not depend on them. Systems take turns, so that all meet the same load of the machine.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.lecture.systems import System
from benchmarks.results import Record, command, save
from model.batching import Batch, ReviewBatch, TextBatch, TranslationBatch
from model.checkpoint import Model, build_model
from model.networks.language_model import LanguageModel
from model.networks.masks import padding_mask
from model.networks.translator import TranslationModel
from model.recipe import Experiment
from model.training.examples import TrainingData
from model.training.optimization import Optimization, TrainingModule
from model.training.optimizer import build_optimizer
from model.training.precision import usable_precision

LENGTHS = (32, 128, 512, 2048)
"""Tokens of every sequence in a training batch, and cached tokens of a decoding step."""
BATCH_TOKENS = 2048
SECONDS_PER_POINT, ROUNDS = 0.3, 2


def measure(systems: Iterable[System], quick: bool, console: Console) -> None:
    """Measure milliseconds of each system's steps at each length, as medians of rounds in turns, and save them."""
    lengths = LENGTHS[:2] if quick else LENGTHS
    budget_s, rounds = (0.1, 1) if quick else (SECONDS_PER_POINT, ROUNDS)
    timings: dict[System, dict[str, dict[int, list[float]]]] = {}
    systems = list(systems)
    for _ in range(rounds):
        for system in systems:
            timed = timings.setdefault(system, {"training": defaultdict(list), "decoding": defaultdict(list)})
            for length in lengths:
                experiment = _longer(system.experiment(quick), length)
                timed["training"][length].append(_median_ms(_training_step(experiment, length), budget_s))
                if system.family != "classification":
                    timed["decoding"][length].append(_median_ms(_decoding_step(experiment, length), budget_s))
    records: list[Record] = []
    for system, timed in timings.items():
        medians = {kind: {n: statistics.median(ms) for n, ms in of.items()} for kind, of in timed.items()}
        described = {"system": system.name, "family": system.family, "batch_tokens": BATCH_TOKENS}
        records.append(described | {"command": command()} | medians)
        console.print(system.name, medians)
    save("lecture-speed", ["system", "family"], records, quick)


def tokens_per_s(times: Record) -> float:
    """Return the tokens per second of training with short sequences, on both sides if there are two."""
    sides = 2 if times["family"] == "translation" else 1
    tokens: float = sides * 1000 * times["batch_tokens"] / times["training"][str(LENGTHS[0])]
    return tokens


def _longer(experiment: Experiment, length: int) -> Experiment:
    """Return the experiment with positions for this length."""
    return experiment.model_copy(update={"model": experiment.model.model_copy(update={"max_positions": length})})


def _training_step(experiment: Experiment, length: int) -> Callable[[], object]:
    """Return a training step on a batch of BATCH_TOKENS (of either side), in rows of `length` tokens."""
    torch.manual_seed(1)
    model = build_model(experiment)
    module = TrainingModule(model, Optimization(experiment.training, TrainingData([], []), _no_batch))
    optimizer = build_optimizer(model, experiment.training)
    batch = _batch(experiment, max(1, BATCH_TOKENS // length), length)
    mixed = usable_precision(experiment.training.precision) == "bf16-mixed"

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            loss = module.loss(batch, experiment.training.label_smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    return step


def _no_batch() -> Batch:
    raise NotImplementedError


def _batch(experiment: Experiment, n_rows: int, length: int) -> Batch:
    def ids() -> Tensor:
        return torch.randint(4, experiment.model.vocab_size, (n_rows, length))

    lengths = torch.full((n_rows,), length)
    if experiment.model.task == "classification":
        return ReviewBatch(ids(), lengths, torch.randint(2, (n_rows,)))
    if experiment.model.task == "language_model":
        return TextBatch(ids(), ids())
    return TranslationBatch(ids(), lengths, ids(), ids())


def _decoding_step(experiment: Experiment, length: int) -> Callable[[], object]:
    """Return a decoding step of token number `length` in one row, in float32, after a source of this length."""
    torch.manual_seed(1)
    model: Model = build_model(experiment).eval()
    token, lengths = torch.tensor([5]), torch.tensor([length])
    if isinstance(model, LanguageModel):
        caches = model.init_caches(1, length)
        return torch.inference_mode()(lambda: model.step(token.unsqueeze(0), length - 1, caches))
    assert isinstance(model, TranslationModel)
    translator: TranslationModel = model
    source_mask = padding_mask(lengths, length)
    with torch.inference_mode():
        memory = translator.encode(torch.randint(4, experiment.model.vocab_size, (1, length)), source_mask)
        states = translator.init_caches(memory, length)
    return torch.inference_mode()(lambda: translator.decode_step(token, lengths - 1, states, source_mask))


def _median_ms(run: Callable[[], object], budget_s: float) -> float:
    run()
    seconds: list[float] = []
    ends_at = time.perf_counter() + budget_s
    while time.perf_counter() < ends_at or len(seconds) < 3:
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)
