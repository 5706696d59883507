"""Puts a catalog together: of each artifact its tokenizer, the pools of its engines, and the tasks that use them."""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from types import SimpleNamespace
from typing import Any, cast

from manifest.layout import TOKENIZER, VOCABULARY
from manifest.precedence import better_first, earlier_first
from manifest.vocabulary import Vocabulary
from service.base.artifact import Artifact
from service.base.errors import UnknownModel
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.catalog import Catalog, Watch
from service.front.directions import Directions
from service.kept.slots import slots_of
from service.pool.loader import LoadedModels, Loader, TokenizerFiles, configured_artifacts, read_tokenizer_files
from service.pool.pool import Pool, Worker
from service.pool.remote_worker import RemoteWorker
from service.pool.sentence_cache import CachedSearches, SentenceCache
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation.translator import Translator
from service.text.languages import TranslatorLanguages, canonical
from service.text.tokenization import Tokenizer

MAX_SEQUENCES = 10_000
"""Most sentences, or windows of long texts, of one request."""


def load_catalog(
    settings: Settings, metrics: Metrics, loader: Loader | None = None, cache: SentenceCache | None = None
) -> Catalog:
    """Load the models that the settings name; they are not started yet. `loader` is the process that is loading them;
    by default a new one. `cache` keeps the answers of these models beside those of former ones; by default a new one.
    Raises StartRefused: an artifact or the provider cannot be used."""
    loader = loader or Loader(settings)
    loader.report_worker_ends(metrics.worker_ended)
    try:
        # What is read here is read while the loader loads.
        tokenizers = _tokenizers(loader.artifacts, read_tokenizer_files(loader.artifacts))
        canonical("en")  # the first call reads the tables of languages
        loaded = loader.wait()
        loaded.announce(settings)
        return catalog_of(loaded, settings, metrics, loader, tokenizers, cache)
    except BaseException:
        loader.end()
        raise


def directions_of(settings: Settings, name: str | None = None) -> Directions:
    """Return which models translate what, before any is loaded. Only manifests are read, and nothing can be translated.
    `name` is the only model that may translate. Raises ArtifactRefused: an artifact is missing, or its manifest is
    invalid. Raises UnknownModel: no translator has this name, or there are none."""
    manifests = [artifact.manifest for artifact in configured_artifacts(settings).values()]
    translators = [manifest for manifest in manifests if manifest.task == "translation"]
    names = ", ".join(manifest.name for manifest in translators) or "none"
    asked = [manifest for manifest in translators if name in (None, manifest.name)]
    if not asked:
        raise UnknownModel(f"No model {f'named {name!r} ' if name else ''}can translate here; available: {names}")
    if not settings.models:
        asked.sort(key=better_first)
    languages = (TranslatorLanguages(manifest.sources, manifest.targets) for manifest in asked)
    described = [SimpleNamespace(manifest=manifest, languages=next(languages)) for manifest in asked]
    return Directions(cast("list[Translator]", described), name, ordered=bool(settings.models))


def catalog_of(
    loaded: LoadedModels,
    settings: Settings,
    metrics: Metrics,
    loader: Loader | None = None,
    tokenizers: Mapping[str, Tokenizer] | None = None,
    cache: SentenceCache | None = None,
    workers: SequenceOf[Worker] | None = None,
) -> Catalog:
    """Make a catalog of models that workers run. Nothing is read from disk, where files may have changed since.

    Args:
        loader: the process that loaded the models, if it is to end with them.
        tokenizers: the tokenizers by model, if they have been read.
        cache: keeps the answers of these models, beside those of former ones; by default a new one.
        workers: the workers that run the models; by default the processes at the paths of `loaded`.

    Raises:
        ArtifactRefused: a tokenizer is of a kind that the service cannot read.
    """
    if workers is None:
        workers = [RemoteWorker(path, metrics.add, device) for path, device in loaded.paths.items()]
    tokenizers = tokenizers or _tokenizers(loaded.artifacts, loaded.tokenizer_files)
    return _catalog(loaded, workers, settings, metrics, loader, tokenizers, cache)


def _tokenizers(artifacts: Mapping[str, Artifact], files: TokenizerFiles) -> dict[str, Tokenizer]:
    """Raises ArtifactRefused: a tokenizer is of a kind that the service cannot read."""
    return {name: _tokenizer(artifact, files[name]) for name, artifact in artifacts.items()}


def _tokenizer(artifact: Artifact, files: Mapping[str, bytes]) -> Tokenizer:
    manifest = artifact.manifest
    vocabulary, special = None, set[int]()
    if VOCABULARY in files:
        vocabulary = Vocabulary.parse(files[VOCABULARY], manifest.special_tokens.unk)
        special.update(
            manifest.special_tokens.model_dump().values(), *(target.target_prefix for target in manifest.targets)
        )
    # Encoders with special tokens of their own, and summarizers, were trained on texts without any change.
    as_it_is = manifest.task == "embedding" or manifest.pools_states or manifest.writes_no_language
    return Tokenizer(artifact.path(TOKENIZER), files[TOKENIZER], vocabulary, special, as_it_is)


def _catalog(
    loaded: LoadedModels,
    workers: SequenceOf[Worker],
    settings: Settings,
    metrics: Metrics,
    loader: Loader | None,
    tokenizers: Mapping[str, Tokenizer],
    cache: SentenceCache | None,
) -> Catalog:
    cache = cache or SentenceCache(settings.cache, metrics.cache)
    translators, classifiers, embedders = [], [], []
    for name, artifact in loaded.artifacts.items():
        manifest, tokenizer, provider = artifact.manifest, tokenizers[name], loaded.model_infos[name].provider

        def pool(kind: str, task: str, name: str = name, answers: CachedSearches | None = None) -> Pool[Any]:
            limits = MAX_SEQUENCES, settings.max_waiting
            return Pool(f"{name}/{kind}", workers, metrics.of_task(task), *limits, answers=answers)

        attention, limit = pool("attention", "attention"), settings.max_answer_numbers
        if manifest.task == "translation":
            answers = _cached_searches(cache, artifact, provider)
            greedy, beam = (pool(kind, "translation", answers=answers) for kind in ("greedy", "beam"))
            slots = slots_of(manifest.slots, tokenizer)
            translators.append(Translator(manifest, provider, tokenizer, greedy, beam, attention, limit, slots))
        elif manifest.task == "classification":
            classifying = pool("classification", "classification")
            classifiers.append(Classifier(manifest, provider, tokenizer, classifying, attention, limit))
        of_embedder = attention if manifest.task == "embedding" else None
        embedders.append(Embedder(manifest, provider, tokenizer, pool("embedding", "embedding"), limit, of_embedder))
    if not settings.models:
        translators.sort(key=lambda model: better_first(model.manifest))
        classifiers.sort(key=lambda model: earlier_first(model.manifest))
        embedders.sort(key=lambda model: earlier_first(model.manifest))
    watch = Watch(loaded.artifacts.values())
    ordered = bool(settings.models)
    return Catalog(translators, classifiers, embedders, workers, loader, watch, ordered, metrics)


def _cached_searches(cache: SentenceCache, artifact: Artifact, provider: str) -> CachedSearches | None:
    """On CUDA nothing is cached, since the last bits of scores may differ."""
    if not cache.max_bytes or provider != "cpu" or artifact.manifest_sum is None:
        return None
    return CachedSearches(cache, artifact.manifest.name, artifact.manifest_sum.sha256)
