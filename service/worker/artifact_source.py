"""Makes engines of artifacts: combines runner, engine and tasks, in whichever process loads a model."""

import gc
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from manifest.layout import DENSE, WEIGHTS
from service.base.artifact import Artifact
from service.base.contract import BACKGROUND, DecoderRows, ModelInfo, Project, in_background, kind_of
from service.base.cores import n_workers, usable_cores
from service.base.errors import ProviderUnavailable, StartRefused
from service.base.settings import Settings
from service.engine.beam_search import BeamSearch
from service.engine.engine import ContinuousEngine, Engine, OnePass, RunPass
from service.engine.fixed_beam_search import FixedBeamSearch
from service.engine.fixed_engine import FixedEngine
from service.engine.fixed_greedy_search import FixedGreedySearch
from service.engine.greedy_search import GreedySearch
from service.engine.places import MIN_STEP_SIZE
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from service.passes.attention import attention_probe, read_attention
from service.passes.pooling import WindowEmbedding, WindowLogits, read_logits, read_states
from service.runner import heap
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.one_pass import AttentionRunner, EmbeddingRunner, classify, project
from service.runner.provider import Provider, choose_provider
from service.runner.translation import MAX_PADDING, TranslationGraphs, TranslationRunner
from service.runner.weights import Weights, load_session, read_weights
from service.worker.on_demand import Engines

Output = TypeVar("Output")

ENGINE_KINDS = {
    "translation": ("greedy", "beam", "embedding", "attention"),
    "classification": ("classification", "embedding", "attention"),
    "embedding": ("embedding", "attention"),
}
"""The engines of a model, by its task."""
BACKGROUND_KINDS = {"greedy", "beam", "attention"}
"""The engines that also run in the background on a CPU: those that translate documents."""
PADDED_TOKENS, PADDED_TOKENS_ON_DEVICE = 512, 8192
"""Most padded tokens that one forward pass reads, on the CPU and on a device."""
BACKGROUND_ROWS, BACKGROUND_PADDED_TOKENS = 32, 192
"""Sizes of steps in the background: another request waits for one of them at most."""
ATTENTION_UNLOAD_AFTER_S = 600.0
"""How long after its last use a model that has a worker of its own unloads its graph of attention matrices."""


@dataclass(frozen=True)
class ArtifactSource:
    """A `Source` of artifacts, by name. `provider` is that of workers that share models, once the source is
    resolved."""

    artifacts: dict[str, Artifact]
    settings: Settings
    provider: Provider | None = None

    @property
    def models(self) -> list[str]:
        return list(self.artifacts)

    def resolved(self) -> "ArtifactSource":
        """Choose the provider and its threads: on the CPU several workers of one thread do more than one worker with
        all threads. Raises ProviderUnavailable: CUDA is wanted and cannot be used. Raises StartRefused: there is a
        memory limit, and models run on CUDA."""
        settings = self.settings
        if settings.devices:
            name = choose_provider("cuda", "ATTEND_DEVICES names GPUs")
        else:
            name = choose_provider(settings.provider)
        if name == "cuda" and settings.model_memory is not None:
            raise StartRefused(
                "ATTEND_MODEL_MEMORY needs ATTEND_PROVIDER=cpu: it limits main memory, and models run on CUDA"
            )
        captures = name == "cuda"
        threads = (settings.threads or 1) // n_workers(settings, name) or 1
        # A worker computes in one session at a time. Under a memory limit each model's memory has to be returned.
        shares_arena = settings.model_memory is None
        return replace(self, provider=Provider(name, threads, captures, shares_arena))

    @property
    def n_workers(self) -> int:
        assert self.provider is not None
        return n_workers(self.settings, self.provider.name)

    @property
    def forks(self) -> bool:
        """Neither CUDA nor the threads of a session survive a fork; on other systems than Linux libraries may forbid
        it."""
        provider = self.provider
        return sys.platform == "linux" and provider is not None and provider.name == "cpu" and provider.threads == 1

    @property
    def model_memory(self) -> int | None:
        return self.settings.model_memory

    def model_info(self, model: str) -> ModelInfo:
        """Return what is known about a model; check its files, if it is loaded later."""
        artifact = self.artifacts[model]
        if self.model_memory is not None:
            artifact.verify()
        manifest, provider = artifact.manifest, self._provider_for(artifact).name
        engines = [f"{model}/{kind}" for kind in ENGINE_KINDS[manifest.task]]
        if provider == "cpu":
            engines += [in_background(engine) for engine in engines if kind_of(engine) in BACKGROUND_KINDS]
        read = [file for name, file in manifest.files.items() if name == WEIGHTS or name.startswith(f"{provider}/")]
        return ModelInfo(provider, tuple(engines), sum(file.bytes for file in read))

    def load(self, model: str, alone: bool) -> Engines:
        artifact = self.artifacts[model]
        provider = self._provider_for(artifact)
        if self.settings.model_memory is not None:
            heap.keep_large_blocks_apart()
        if alone:
            provider = replace(provider, threads=self.settings.threads or usable_cores())
        weights = read_weights(artifact)
        match artifact.manifest.task:
            case "translation":
                return self._translator(artifact, provider, weights, alone)
            case "classification":
                return self._classifier(artifact, provider, weights, alone)
            case "embedding":
                return self._embedder(artifact, provider, weights, alone)

    def trim(self) -> None:
        gc.collect()
        heap.trim()

    def _provider_for(self, artifact: Artifact) -> Provider:
        """An artifact may have no graphs for the provider; then it runs on the CPU."""
        provider = self.provider
        assert provider is not None, "a source is resolved before it loads"
        if provider.name in artifact.manifest.providers:
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
        embedding = EmbeddingRunner(artifact, graphs.encoder, graphs.captures.none())
        return self._with_common_engines(artifact, provider, weights, alone, engines, embedding)

    def _classifier(self, artifact: Artifact, provider: Provider, weights: Weights, alone: bool) -> Engines:
        manifest = artifact.manifest
        assert manifest.pooling is not None, "a classifier's manifest has one"
        session = load_session(artifact, provider, "classifier.onnx", weights=weights)
        run = partial(read_logits, partial(classify, artifact, session), manifest.pooling)
        classifying = self._one_pass(run, lambda: Sequence([manifest.special_tokens.unk], WindowLogits()), provider)
        engines: Engines = {"classification": classifying}
        return self._with_common_engines(
            artifact, provider, weights, alone, engines, EmbeddingRunner(artifact, session)
        )

    def _embedder(self, artifact: Artifact, provider: Provider, weights: Weights, alone: bool) -> Engines:
        session = load_session(artifact, provider, "encoder.onnx", weights=weights)
        dense = None
        if artifact.manifest.has_dense:
            dense = partial(project, load_session(artifact, provider, DENSE, weights=weights))
        embedding = EmbeddingRunner(artifact, session)
        return self._with_common_engines(artifact, provider, weights, alone, {}, embedding, dense)

    def _with_common_engines(
        self,
        artifact: Artifact,
        provider: Provider,
        weights: Weights,
        alone: bool,
        engines: Engines,
        embedding: EmbeddingRunner,
        dense: Project | None = None,
    ) -> Engines:
        """Every model has engines of embeddings and of attention, beside these."""
        manifest = artifact.manifest
        # Workers that are forked share what was loaded before. What one of them loads is its own.
        unload_after_s = ATTENTION_UNLOAD_AFTER_S if alone and provider.name == "cpu" else None
        attending = AttentionRunner(artifact, provider, weights, unload_after_s)
        attention = partial(
            self._one_pass,
            partial(read_attention, attending.attend),
            partial(attention_probe, manifest),
            is_resting=attending.is_resting,
        )
        others: dict[str, Engine[Any]] = {
            "embedding": self._one_pass(
                partial(read_states, embedding.embed, dense),
                lambda: Sequence([manifest.special_tokens.unk], WindowEmbedding.by_default(manifest)),
                provider,
            ),
            "attention": attention(provider, on_device=512),
        }
        if provider.name == "cpu":
            others[f"{BACKGROUND}attention"] = attention(provider, on_cpu=BACKGROUND_PADDED_TOKENS)
        return {f"{manifest.name}/{kind}": engine for kind, engine in {**engines, **others}.items()}

    def _one_pass(
        self,
        run: RunPass[Output],
        new_probe: Callable[[], Sequence[Output]],
        provider: Provider,
        on_device: int = PADDED_TOKENS_ON_DEVICE,
        on_cpu: int = PADDED_TOKENS,
        is_resting: Callable[[], bool] = lambda: False,
    ) -> ContinuousEngine[Output]:
        """Return an engine of sequences that one pass finishes. `on_device` and `on_cpu` are the most padded tokens of
        a pass. On a CPU small passes are faster: a layer's output stays in its caches, and there is less padding."""
        settings = self.settings
        padded_tokens, max_padding = (on_cpu, MAX_PADDING) if provider.name == "cpu" else (on_device, math.inf)
        scheduler = Scheduler[Output](settings.rows or 256, settings.max_waiting, padded_tokens, max_padding)
        return ContinuousEngine(OnePass(run, new_probe, is_resting), scheduler)


def compact_engines(graphs: TranslationGraphs, settings: Settings, alone: bool = True) -> dict[str, Engine[Search]]:
    """Return engines for the CPU, where the cost of a step is its number of rows. `alone`: the model has a worker of
    its own."""
    tokens = graphs.manifest.special_tokens
    padded_tokens = PADDED_TOKENS
    measured = TranslationRunner(graphs, MANY_ROWS, min_queries=1)
    n_rows = settings.rows or _most_rows(measured, graphs.manifest.dimensions.target_vocab_size, tokens.eos)
    if not alone:
        padded_tokens = _max_padded_tokens(padded_tokens, measured, tokens.eos)
    n_beam_rows = settings.rows or n_rows * ROWS_OF_A_LIVE_HYPOTHESIS
    engines: dict[str, Engine[Search]] = {}
    few_rows = min(n_rows, BACKGROUND_ROWS), min(n_beam_rows, BACKGROUND_ROWS)
    for prefix, (greedy_rows, beam_rows) in {"": (n_rows, n_beam_rows), BACKGROUND: few_rows}.items():
        n_tokens = min(padded_tokens, BACKGROUND_PADDED_TOKENS) if prefix else padded_tokens
        greedy = GreedySearch(TranslationRunner(graphs, greedy_rows, min_queries=1), tokens.bos, tokens.eos)
        beam = BeamSearch(TranslationRunner(graphs, beam_rows), tokens.bos, tokens.eos)
        for kind, search, max_rows in (("greedy", greedy, greedy_rows), ("beam", beam, beam_rows)):
            scheduler = Scheduler[Search](max_rows, settings.max_waiting, n_tokens, MAX_PADDING)
            engines[prefix + kind] = ContinuousEngine(search, scheduler)
    return engines


def fixed_engines(graphs: TranslationGraphs, settings: Settings) -> dict[str, Engine[Search]]:
    """Return engines for a device, where the number of runs and of new shapes is the cost."""
    tokens = graphs.manifest.special_tokens
    special = tokens.bos, tokens.eos, tokens.pad
    max_rows, padded_tokens = settings.rows or 256, PADDED_TOKENS_ON_DEVICE
    encoder = DeviceEncoder(graphs, max_rows, padded_tokens)
    rows = DeviceTranslationRunner(graphs, encoder, max_rows, max_rows)
    ahead = graphs.provider.captures
    greedy = FixedGreedySearch(rows, max_rows, *special, ahead)
    places = max(MIN_STEP_SIZE, max_rows // 2)
    repeats = ahead and graphs.manifest.decoder_self == "attention"  # a state must not advance twice
    beam = FixedBeamSearch(DeviceTranslationRunner(graphs, encoder, max_rows, places), max_rows, *special, repeats)
    return {
        kind: FixedEngine(search, Scheduler(max_rows, settings.max_waiting, padded_tokens))
        for kind, search in (("greedy", greedy), ("beam", beam))
    }


FEW_ROWS, MANY_ROWS = 24, 48
"""The most rows of a decoder step in greedy search. A model has the number that is faster for it."""
MIN_GAIN = 0.1
"""By what share a step of many rows must take less time for each row."""
MAX_MEASURED_LOGITS = 4_000_000
"""Most logits of a step that is measured. Memory for larger ones would stay in use though nobody translates."""
ROWS_OF_A_LIVE_HYPOTHESIS = 2
"""About half of the rows that a beam may take are in use: the others' hypotheses have ended or been dropped."""


def _most_rows(rows: DecoderRows, n_tokens: int, token: int) -> int:
    """Return how many rows a decoder step may have at most. More rows share the reading of weights, but their caches do
    not stay in the CPU's own, and all sources are padded to the longest. So the faster number depends on the model and
    on the machine. `n_tokens` is the size of the target vocabulary; sources and targets may have `token`."""
    if n_tokens * MANY_ROWS > MAX_MEASURED_LOGITS:
        return MANY_ROWS
    short, long = (rows.encode([[token] * length])[0] for length in (16, 48))

    def seconds_of_a_row(n: int) -> float:
        rows.enter(0, [short] * (n - 1) + [long])
        seconds = []
        for _ in range(2):  # the first one binds memory
            began = time.perf_counter()
            rows.step([token] * n, [16] * n, length=17, k=2)
            seconds.append(time.perf_counter() - began)
        return min(seconds) / n

    # In turns: on a busy machine one of them alone would often be slow.
    rounds = [(seconds_of_a_row(FEW_ROWS), seconds_of_a_row(MANY_ROWS)) for _ in range(5)]
    few, many = map(min, zip(*rounds, strict=True))
    return MANY_ROWS if many < (1 - MIN_GAIN) * few else FEW_ROWS


MAX_PASS_S = 0.02
"""Longest encoder pass in a worker that models share."""
MIN_PADDED_TOKENS = 64


def _max_padded_tokens(padded_tokens: int, rows: DecoderRows, token: int) -> int:
    """Return how many padded tokens, at most `padded_tokens`, an encoder pass reads within MAX_PASS_S."""
    sources = [[token] * 32] * 4
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        rows.encode(sources)
        seconds.append(time.perf_counter() - began)
    in_time = int(MAX_PASS_S / min(seconds) * 32 * 4)
    return max(MIN_PADDED_TOKENS, min(padded_tokens, in_time))
