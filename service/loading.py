"""Artifacts to models: the one place where the rooms are put together."""

import logging
from dataclasses import replace

from service.artifact import Artifact, read_artifacts
from service.classification import Classifier
from service.decoding import BeamSearch, Search
from service.engine import Engine
from service.metrics import EngineMetrics, Metrics
from service.pool import Pool
from service.pooling import OnePass
from service.registry import Models
from service.runner.classification import ClassificationRunner
from service.runner.provider import Provider, choose_provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from service.scheduler import Scheduler
from service.settings import Settings
from service.tokenization import Tokenizer
from service.translation import Translator

logger = logging.getLogger(__name__)


def load_models(settings: Settings, metrics: Metrics) -> Models:
    """Every artifact as a model, not started yet.

    Raises:
        StartRefused: an artifact or the provider is not as it should be.
    """
    provider = choose_provider(settings.provider, settings.threads)
    artifacts = read_artifacts(settings.artifacts)
    for manifest in (artifact.manifest for artifact in artifacts):
        where = f"{provider.name}, {provider.threads} threads"
        logger.info("%s: %s in %s on %s", manifest.name, manifest.task, manifest.precision, where)
    return Models(
        [_translator(a, provider, settings, metrics) for a in artifacts if a.manifest.task == "translation"],
        [_classifier(a, provider, settings, metrics) for a in artifacts if a.manifest.task == "classification"],
    )


def _translator(artifact: Artifact, provider: Provider, settings: Settings, metrics: Metrics) -> Translator:
    manifest = artifact.manifest
    on_cpu = provider.name == "cpu"
    workers = settings.workers or (provider.threads if on_cpu else 1)
    slots = settings.slots or (48 if on_cpu else 256)
    graphs = TranslationGraphs(artifact, replace(provider, threads=max(1, provider.threads // workers)))

    def engine(number: int) -> Engine[Search]:
        runner = TranslationRunner(graphs, slots)
        return Engine(
            f"{manifest.name} worker {number}" if workers > 1 else manifest.name,
            BeamSearch(runner, slots, manifest.special_tokens.bos, manifest.special_tokens.eos),
            Scheduler(slots, settings.max_waiting, settings.prefill_padded_tokens or (512 if on_cpu else 8192)),
            EngineMetrics(metrics, manifest.task),
            settings.probe_interval_s,
        )

    pool = Pool([engine(number) for number in range(workers)])
    return Translator(manifest, provider.name, Tokenizer(artifact.path("tokenizer.json")), pool)


def _classifier(artifact: Artifact, provider: Provider, settings: Settings, metrics: Metrics) -> Classifier:
    manifest = artifact.manifest
    engine = Engine(
        manifest.name,
        OnePass(ClassificationRunner(artifact, provider), manifest.special_tokens.unk),
        Scheduler(settings.slots or 256, settings.max_waiting, settings.prefill_padded_tokens or 8192),
        EngineMetrics(metrics, manifest.task),
        settings.probe_interval_s,
    )
    return Classifier(manifest, provider.name, Tokenizer(artifact.path("tokenizer.json")), Pool([engine]))
