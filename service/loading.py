"""Artifacts to models: the one place where the rooms are put together."""

import logging
from dataclasses import replace
from functools import partial
from typing import TypeVar

from service.artifact import TOKENIZER, Artifact, Manifest, read_artifacts
from service.engine.beam_search import BeamSearch, Search
from service.engine.computation import OnePass
from service.engine.engine import Engine
from service.engine.greedy_search import GreedySearch
from service.engine.pool import Pool
from service.engine.scheduler import Scheduler, Sequence
from service.engine.searches import Searches
from service.engine.worker import Worker
from service.errors import ProviderUnavailable
from service.metrics import Metrics, TaskMetrics
from service.registry import Models
from service.runner.one_pass import AttentionRunner, ClassificationRunner, EmbeddingRunner
from service.runner.provider import Provider, choose_provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from service.settings import Settings
from service.tasks.attention import Seen, attention_probe, read_attention
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedded, Embedder, read_states
from service.tasks.pooling import Reading, read_logits
from service.tasks.translation import Translator
from service.text.tokenization import Tokenizer

logger = logging.getLogger(__name__)

Output = TypeVar("Output")


def load_models(settings: Settings, metrics: Metrics) -> Models:
    """Every artifact as a model, not started yet.

    Raises:
        StartRefused: an artifact or the provider is not as it should be.
    """
    chosen = choose_provider(settings.provider, settings.threads)
    translators, classifiers, embedders = [], [], []
    for artifact in read_artifacts(settings.artifacts):
        provider = _suitable(artifact.manifest, chosen, settings)
        logger.info(
            "%s: %s in %s on %s, %d threads",
            artifact.manifest.name,
            artifact.manifest.task,
            artifact.manifest.precision,
            provider.name,
            provider.threads,
        )
        tokenizer = Tokenizer(artifact.path(TOKENIZER))
        if artifact.manifest.task == "translation":
            translators.append(_translator(artifact, provider, tokenizer, settings, metrics))
        else:
            classifiers.append(_classifier(artifact, provider, tokenizer, settings, metrics))
        embedders.append(_embedder(artifact, provider, tokenizer, settings, metrics))
    return Models(translators, classifiers, embedders)


def _suitable(manifest: Manifest, chosen: Provider, settings: Settings) -> Provider:
    """The chosen provider, or the CPU where the artifact has no graphs for it."""
    if manifest.has_graphs_for(chosen.name):
        return chosen
    if settings.provider == "cuda":
        raise ProviderUnavailable(
            f"ATTEND_PROVIDER is cuda, but {manifest.name} has no graphs for it: there is no cuda/"
        )
    return replace(chosen, name="cpu")


def _translator(
    artifact: Artifact, provider: Provider, tokenizer: Tokenizer, settings: Settings, metrics: Metrics
) -> Translator:
    manifest = artifact.manifest
    on_cpu = provider.name == "cpu"
    n_workers = default_workers(provider) if settings.workers is None else settings.workers
    slots = settings.slots or (96 if on_cpu else 256)
    make_engine = partial(
        translation_engine,
        artifact,
        replace(
            provider,
            threads=max(1, provider.threads // max(1, n_workers)),
            captures=settings.cuda_graphs and not on_cpu,
        ),
        slots,
        settings.max_waiting,
        settings.prefill_padded_tokens or (512 if on_cpu else 8192),
        settings.probe_interval_s,
    )
    task_metrics = TaskMetrics(metrics, manifest.task)
    if n_workers == 0:
        pool = Pool([make_engine(manifest.name, task_metrics)], task_metrics, settings.max_sequences)
    else:
        names = [f"{manifest.name} worker {number}" for number in range(n_workers)]
        workers = [Worker(name, partial(make_engine, name), slots, task_metrics) for name in names]
        for worker in workers:
            worker.wait_until_loaded()
        pool = Pool(workers, task_metrics, settings.max_sequences, settings.max_waiting)
    return Translator(
        manifest,
        provider.name,
        tokenizer,
        pool,
        attention_pool(artifact, provider, settings, metrics),
        settings.max_attention_weights,
        settings.max_shown_tokens,
    )


def default_workers(provider: Provider) -> int:
    """One per thread, but few: each is a process of some 80 MB, and there may be eight models on sixteen cores."""
    return min(provider.threads, 4) if provider.name == "cpu" else 1


def translation_engine(
    artifact: Artifact,
    provider: Provider,
    slots: int,
    max_waiting: int,
    prefill_padded_tokens: int,
    probe_interval_s: float,
    name: str,
    metrics: TaskMetrics,
) -> Engine[Search]:
    """The engine of a translation model, in whichever process this is called."""
    return Engine(
        name,
        searches(TranslationGraphs(artifact, provider), slots),
        Scheduler(slots, max_waiting, prefill_padded_tokens, provider.most_padding),
        metrics,
        probe_interval_s,
    )


def searches(graphs: TranslationGraphs, slots: int) -> Searches:
    """Both searches over the graphs, each with rows and caches of its own."""
    tokens = graphs.manifest.special_tokens
    greedy = GreedySearch(TranslationRunner(graphs, slots, fewest_queries=1), tokens.bos, tokens.eos)
    return Searches(greedy, BeamSearch(TranslationRunner(graphs, slots), tokens.bos, tokens.eos))


def _classifier(
    artifact: Artifact, provider: Provider, tokenizer: Tokenizer, settings: Settings, metrics: Metrics
) -> Classifier:
    manifest = artifact.manifest
    assert manifest.pooling is not None, "a classifier's manifest has one"
    read = partial(read_logits, ClassificationRunner(artifact, provider).classify, manifest.pooling)
    whole = OnePass(read, lambda: Sequence([manifest.special_tokens.unk], Reading()))
    return Classifier(
        manifest,
        provider.name,
        tokenizer,
        _pool(manifest.name, whole, 8192, manifest.task, settings, metrics),
        attention_pool(artifact, provider, settings, metrics),
        settings.max_attention_weights,
        settings.max_shown_tokens,
    )


def _embedder(
    artifact: Artifact, provider: Provider, tokenizer: Tokenizer, settings: Settings, metrics: Metrics
) -> Embedder:
    manifest = artifact.manifest
    runner = EmbeddingRunner(artifact, provider)
    whole = OnePass(
        partial(read_states, runner.embed),
        lambda: Sequence([manifest.special_tokens.unk], Embedded(wants_tokens=False)),
    )
    padded_tokens = 512 if provider.name == "cpu" else 8192
    return Embedder(
        manifest,
        provider.name,
        tokenizer,
        _pool(f"{manifest.name} embedding", whole, padded_tokens, "embedding", settings, metrics),
        runner.width,
        settings.max_embedding_numbers,
    )


def attention_pool(artifact: Artifact, provider: Provider, settings: Settings, metrics: Metrics) -> Pool[Seen]:
    """One engine with one thread, for requests that ask for attention or alignment or have tags or placeholders."""
    attend = AttentionRunner(artifact, replace(provider, threads=1)).attend
    whole = OnePass(partial(read_attention, attend), partial(attention_probe, artifact.manifest))
    return _pool(f"{artifact.manifest.name} attention", whole, 512, "attention", settings, metrics)


def _pool(
    name: str, whole: OnePass[Output], prefill_padded_tokens: int, task: str, settings: Settings, metrics: Metrics
) -> Pool[Output]:
    """One engine in this process, for sequences that one pass finishes.

    Args:
        prefill_padded_tokens: if the settings have none.
    """
    padded_tokens = settings.prefill_padded_tokens or prefill_padded_tokens
    scheduler = Scheduler[Output](settings.slots or 256, settings.max_waiting, padded_tokens)
    task_metrics = TaskMetrics(metrics, task)
    engine = Engine(name, whole, scheduler, task_metrics, settings.probe_interval_s)
    return Pool([engine], task_metrics, settings.max_sequences)
