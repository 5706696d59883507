"""Artifacts to engines: where the rooms below the tasks are put together, in whichever process this is called."""

import gc
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from service.base.artifact import DENSE, WEIGHTS, Artifact
from service.base.contract import About, DecoderRows, Project
from service.base.cores import usable_cores
from service.base.errors import ProviderUnavailable, StartRefused
from service.base.settings import Settings
from service.engine.beam_search import BeamSearch, Search
from service.engine.computation import OnePass, Read
from service.engine.engine import ContinuousEngine, Engine
from service.engine.fixed_beam_search import FixedBeamSearch
from service.engine.fixed_engine import FixedEngine
from service.engine.fixed_greedy_search import FixedGreedySearch
from service.engine.greedy_search import GreedySearch
from service.engine.places import SMALLEST
from service.engine.scheduler import Scheduler, Sequence
from service.runner import heap
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.one_pass import AttentionRunner, ClassificationRunner, DenseRunner, EmbeddingRunner
from service.runner.provider import Provider, choose_provider
from service.runner.steps import TranslationGraphs
from service.runner.translation import MOST_PADDING, TranslationRunner
from service.runner.weights import Weights, load, read_weights
from service.tasks.attention import attention_probe, read_attention
from service.tasks.pooling import WindowLogits, read_logits
from service.tasks.token_pooling import WindowEmbedding, read_states
from service.workers.on_demand import Engines
from service.workers.processes import n_loops

Output = TypeVar("Output")

KINDS = {
    "translation": ("greedy", "beam", "embedding", "attention"),
    "classification": ("classification", "embedding", "attention"),
    "embedding": ("embedding", "attention"),
}
"""Of the engines that a model of each task has."""


@dataclass(frozen=True)
class ArtifactSource:
    """Engines of artifacts, for a loader or for a loop in this process."""

    artifacts: dict[str, Artifact]
    """By name."""
    settings: Settings
    provider: Provider | None = None
    """Once it is settled: of loops that models share."""

    @property
    def models(self) -> list[str]:
        return list(self.artifacts)

    def settled(self) -> "ArtifactSource":
        """On the CPU several loops with one thread each do more than one with all threads.

        Raises:
            ProviderUnavailable: CUDA is wanted and cannot be used.
            StartRefused: there is a budget, and models run on CUDA.
        """
        settings = self.settings
        name = choose_provider(settings.provider)
        if name == "cuda" and settings.model_memory is not None:
            raise StartRefused(
                "ATTEND_MODEL_MEMORY needs ATTEND_PROVIDER=cpu: it limits main memory, and models run on CUDA"
            )
        captures = name == "cuda" and settings.cuda_graphs and settings.loops != 0
        threads = (settings.threads or 1) // n_loops(settings, name) or 1
        # A loop computes in one session at a time. Under a budget what a model leaves has to be returned.
        shares_arena = settings.model_memory is None
        return replace(self, provider=Provider(name, threads, captures, shares_arena))

    @property
    def n_loops(self) -> int:
        assert self.provider is not None
        return n_loops(self.settings, self.provider.name)

    @property
    def forks(self) -> bool:
        """Neither CUDA nor a session's threads outlive a fork; elsewhere than on Linux libraries may forbid it."""
        provider = self.provider
        return sys.platform == "linux" and provider is not None and provider.name == "cpu" and provider.threads == 1

    @property
    def model_memory(self) -> int | None:
        return self.settings.model_memory

    def about(self, model: str) -> About:
        """Raises:
        ProviderUnavailable: the provider that is asked for has no graphs here.
        ArtifactRefused: a file of a model that is loaded later is not what the manifest says.
        """
        artifact = self.artifacts[model]
        if self.model_memory is not None:
            artifact.verify()
        manifest, provider = artifact.manifest, self._suitable(artifact).name
        engines = tuple(f"{model}/{kind}" for kind in KINDS[manifest.task])
        read = [file for name, file in manifest.files.items() if name == WEIGHTS or name.startswith(f"{provider}/")]
        return About(provider, engines, sum(file.bytes for file in read))

    def load(self, model: str, alone: bool) -> Engines:
        """Every engine of a model.

        Raises:
            StartRefused: ONNX Runtime cannot load it, or the provider is not as it should be.
        """
        artifact = self.artifacts[model]
        provider = self._suitable(artifact)
        if self.settings.model_memory is not None:
            heap.keep_large_blocks_apart()
        if alone:
            provider = replace(provider, threads=self.settings.threads or usable_cores())
        weights = read_weights(artifact)
        match artifact.manifest.task:
            case "translation":
                return self._translator(artifact, provider, weights, alone)
            case "classification":
                return self._classifier(artifact, provider, weights)
            case "embedding":
                return self._embedder(artifact, provider, weights)

    def trim(self) -> None:
        gc.collect()
        heap.trim()

    def _suitable(self, artifact: Artifact) -> Provider:
        """The provider, or the CPU where the artifact has no graphs for it."""
        provider = self.provider
        assert provider is not None, "a source is settled before it loads"
        if artifact.manifest.has_graphs_for(provider.name):
            return provider
        if self.settings.provider == "cuda":
            raise ProviderUnavailable(
                f"ATTEND_PROVIDER is cuda, but {artifact.manifest.name} has no graphs for it: there is no cuda/"
            )
        return replace(provider, name="cpu", captures=False)

    def _translator(self, artifact: Artifact, provider: Provider, weights: Weights, alone: bool) -> Engines:
        graphs = TranslationGraphs(artifact, provider, weights)
        if provider.name == "cpu":
            engines = compact_engines(graphs, self.settings, alone)
        else:
            engines = fixed_engines(graphs, self.settings)
        embedding = EmbeddingRunner(artifact, graphs.encoder, graphs.no_capture())
        return self._loaded(artifact, provider, weights, engines, embedding)

    def _classifier(self, artifact: Artifact, provider: Provider, weights: Weights) -> Engines:
        manifest = artifact.manifest
        assert manifest.pooling is not None, "a classifier's manifest has one"
        session = load(artifact, provider, "classifier.onnx", weights=weights)
        read = partial(read_logits, ClassificationRunner(artifact, session).classify, manifest.pooling)
        classifying = self._one_pass(read, lambda: Sequence([manifest.special_tokens.unk], WindowLogits()), provider)
        engines: Engines = {"classification": classifying}
        return self._loaded(artifact, provider, weights, engines, EmbeddingRunner(artifact, session))

    def _embedder(self, artifact: Artifact, provider: Provider, weights: Weights) -> Engines:
        session = load(artifact, provider, "encoder.onnx", weights=weights)
        project = None
        if artifact.manifest.has_dense:
            project = DenseRunner(load(artifact, provider, DENSE, weights=weights)).project
        return self._loaded(artifact, provider, weights, {}, EmbeddingRunner(artifact, session), project)

    def _loaded(
        self,
        artifact: Artifact,
        provider: Provider,
        weights: Weights,
        engines: Engines,
        embedding: EmbeddingRunner,
        project: Project | None = None,
    ) -> Engines:
        """With the engines that every model has."""
        manifest = artifact.manifest
        attend = AttentionRunner(artifact, provider, weights).attend
        others: dict[str, Engine[Any]] = {
            "embedding": self._one_pass(
                partial(read_states, embedding.embed, project),
                lambda: Sequence([manifest.special_tokens.unk], WindowEmbedding.by_default(manifest)),
                provider,
            ),
            "attention": self._one_pass(
                partial(read_attention, attend), partial(attention_probe, manifest), provider, 512
            ),
        }
        return {f"{manifest.name}/{kind}": engine for kind, engine in {**engines, **others}.items()}

    def _one_pass(
        self,
        read: Read[Output],
        new_probe: Callable[[], Sequence[Output]],
        provider: Provider,
        on_device: int = 8192,
    ) -> ContinuousEngine[Output]:
        """An engine of sequences that one pass finishes.

        Args:
            on_device: padded tokens of one pass, if the settings have none and it is not a CPU's. There few are faster:
                what a layer makes of them stays in its caches, and less is padding.
        """
        settings = self.settings
        padded_tokens, most_padding = (512, MOST_PADDING) if provider.name == "cpu" else (on_device, math.inf)
        padded_tokens = settings.prefill_padded_tokens or padded_tokens
        scheduler = Scheduler[Output](settings.slots or 256, settings.max_waiting, padded_tokens, most_padding)
        return ContinuousEngine(OnePass(read, new_probe), scheduler)


def compact_engines(graphs: TranslationGraphs, settings: Settings, alone: bool = True) -> dict[str, Engine[Search]]:
    """Engines for the CPU, where rows are what a step costs.

    Args:
        alone: whether no other model waits for their passes.
    """
    tokens = graphs.manifest.special_tokens
    slots, padded_tokens = settings.slots or 96, settings.prefill_padded_tokens or 512
    rows = TranslationRunner(graphs, slots, fewest_queries=1)
    if not alone and settings.prefill_padded_tokens is None:
        padded_tokens = _affordable(padded_tokens, rows, tokens.eos)
    greedy = GreedySearch(rows, tokens.bos, tokens.eos)
    beam = BeamSearch(TranslationRunner(graphs, slots), tokens.bos, tokens.eos)
    return {
        kind: ContinuousEngine(search, Scheduler(slots, settings.max_waiting, padded_tokens, MOST_PADDING))
        for kind, search in (("greedy", greedy), ("beam", beam))
    }


def fixed_engines(graphs: TranslationGraphs, settings: Settings) -> dict[str, Engine[Search]]:
    """Engines for a device, where runs and new shapes are what costs."""
    tokens = graphs.manifest.special_tokens
    special = tokens.bos, tokens.eos, tokens.pad
    slots, padded_tokens = settings.slots or 256, settings.prefill_padded_tokens or 8192
    encoder = DeviceEncoder(graphs, slots, padded_tokens)
    rows = DeviceTranslationRunner(graphs, encoder, slots, slots)
    greedy = FixedGreedySearch(rows, slots, *special, ahead=graphs.provider.captures)
    places = max(SMALLEST, slots // 2)
    beam = FixedBeamSearch(DeviceTranslationRunner(graphs, encoder, slots, places), slots, *special)
    return {
        kind: FixedEngine(search, Scheduler(slots, settings.max_waiting, padded_tokens))
        for kind, search in (("greedy", greedy), ("beam", beam))
    }


LONGEST_PASS_S = 0.02
"""Of a pass of the encoder in a loop that models share."""

FEWEST_PADDED_TOKENS = 64


def _affordable(padded_tokens: int, rows: DecoderRows, token: int) -> int:
    """How many padded tokens, up to so many, a pass of the encoder reads in time."""
    sources = [[token] * 32] * 4
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        rows.encode(0, sources)
        seconds.append(time.perf_counter() - began)
    in_time = int(LONGEST_PASS_S / min(seconds) * 32 * 4)
    return max(FEWEST_PADDED_TOKENS, min(padded_tokens, in_time))
