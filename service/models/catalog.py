"""The models that serve, and which of them a request means."""

import logging
import pkgutil
import time
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any, TypeVar

from service.base.artifact import TOKENIZER, VOCABULARY, Artifact
from service.base.errors import UnknownModel, UnprocessableRequest
from service.base.metrics import Metrics, ModelState
from service.base.settings import Settings
from service.engine.loop import Loop
from service.models.directions import Directions, some
from service.models.watch import Watch
from service.segments.slots import slots_of
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation import Translator
from service.text.languages import Wanted, canonical
from service.text.tokenization import Tokenizer, Vocabulary
from service.workers.loader import (
    SOURCE,
    LoadedModels,
    Loader,
    TokenizerFiles,
    configured_artifacts,
    read_tokenizer_files,
)
from service.workers.pool import Pool
from service.workers.remote_worker import RemoteWorker

logger = logging.getLogger(__name__)

Served = TypeVar("Served", Translator, Classifier, Embedder)


class Models:
    """Models that are loaded, started and stopped together.

    Args:
        embedders: models that were made for embeddings, and the encoders of the translators and classifiers.
        loops: that run them.
        loader: of these loops, where they are processes; it ends when the models stop.
        watch: over the files that they were loaded from.
        ordered: whether the first model answers where several could. Otherwise a translator of fewer languages comes
            before one of more.
        metrics: that count what they do.
    """

    def __init__(
        self,
        translators: list[Translator],
        classifiers: list[Classifier],
        embedders: SequenceOf[Embedder] = (),
        loops: SequenceOf[Loop | RemoteWorker] = (),
        loader: Loader | None = None,
        watch: Watch | None = None,
        ordered: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.translators = translators
        self.classifiers = classifiers
        self.embedders = list(embedders)
        self._loops = loops
        self.n_users = 0
        """Requests that use them now."""
        self._loader = loader
        self._watch = watch
        self._changed: dict[str, list[str]] = {}
        self._ordered = ordered
        by_languages = sorted(translators, key=lambda one: (len(one.languages), one.manifest.name))
        self._directions = Directions(translators if ordered else by_languages, ordered=ordered)

    def __iter__(self) -> Iterator[Translator | Classifier | Embedder]:
        yield from self.translators
        yield from self.classifiers
        yield from (embedder for embedder in self.embedders if embedder.manifest.task == "embedding")

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered, and may still ask for attention."""
        for task, _, pool in self._serving():
            if task != "attention":
                pool.drain()

    def stop(self, timeout_s: float) -> None:
        """Answer the accepted requests, within `timeout_s`."""
        self.drain()
        ends_at = time.monotonic() + timeout_s
        for loop in self._loops:
            loop.stop(max(0.0, ends_at - time.monotonic()))
        if self._loader is not None:
            self._loader.end()

    def unready_reason(self) -> str | None:
        """Why this server should get no requests now, model by model; None if it should."""
        reasons: dict[str, str] = {}
        for _, model, pool in self._serving():
            if (reason := pool.unready_reason()) is not None:
                reasons.setdefault(model.manifest.name, reason)
        for name, files in self._changed.items():
            reasons.setdefault(name, f"its files have changed since they were read ({', '.join(files)})")
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None

    def look_at_files(self) -> None:
        """Notice which files have changed. Answers stay what they were, but a loop or a service that starts anew would
        not be what runs now."""
        changed = self._watch.changed() if self._watch is not None else {}
        for name in changed.keys() - self._changed.keys():
            logger.error(
                "the files of %s have changed since they were read: %s. It goes on with what it has read; "
                "POST /models/reload or SIGHUP takes the new ones",
                name,
                ", ".join(changed[name]),
            )
        self._changed = changed

    def directions(self, name: str | None) -> Directions:
        """Those of the translators, or of one.

        Raises:
            UnknownModel: no translation model has this name.
        """
        named = self._named(name, self.translators, "translate")
        return self._directions if name is None else Directions(named, name, self._ordered)

    def classifier(self, name: str | None) -> Classifier:
        """The one model that fits.

        Raises:
            UnknownModel: no classification model has this name, or there are none.
            UnprocessableRequest: there are several; the message names them.
        """
        classifiers = self._named(name, self.classifiers, "classify")
        if len(classifiers) > 1 and not self._ordered:
            names = ", ".join(classifier.manifest.name for classifier in classifiers)
            raise UnprocessableRequest(f"several models could serve, name one: {names}")
        return classifiers[0]

    def embedder(self, name: str | None, source: str | None) -> Embedder:
        """The one model that fits; a language chooses among translators. Without one, models that were made for
        embeddings come before the encoders of others.

        Raises:
            UnknownModel: no model has this name.
            UnprocessableRequest: none reads the language, or several models could serve; the message names them.
        """
        embedders = self._named(name, self.embedders, "embed")
        if source is None:
            fitting = [one for one in embedders if one.manifest.task == "embedding"] or embedders
        else:
            readers = ([one for one in embedders if one.languages.named(form)] for form in Wanted.of_sources(source))
            fitting = next(filter(None, readers), [])
        if not fitting:
            raise UnprocessableRequest(f"no translator here reads {source}; there are {_languages(embedders)}")
        if len(fitting) > 1 and not self._ordered:
            raise UnprocessableRequest(f"several models could serve, name model or source: {_languages(fitting)}")
        return fitting[0]

    def _named(self, name: str | None, models: list[Served], verb: str) -> list[Served]:
        named = [model for model in models if name in (None, model.manifest.name)]
        if named:
            return named
        names = ", ".join(model.manifest.name for model in models) or "none"
        tasks: dict[str, SequenceOf[Translator | Classifier | Embedder]]
        tasks = {"translate": self.translators, "classify": self.classifiers, "embed": self.embedders}
        others = [task for task, able in tasks.items() if any(model.manifest.name == name for model in able)]
        raise UnknownModel(
            f"no model {f'named {name!r} ' if name is not None else ''}can {verb} here; there are {names}"
            + (f" ({name} can {' and '.join(others)})" if others else "")
        )

    def states(self) -> list[ModelState]:
        """For the gauges: a model once for each task that it serves."""
        found: dict[tuple[str, str], ModelState] = {}
        for task, model, pool in self._serving():
            states = pool.states()
            key = model.manifest.name, task
            known = found.get(key) or ModelState(*key, model.manifest.precision, model.provider)
            found[key] = replace(
                known,
                waiting=known.waiting + sum(state.n_waiting for state in states),
                running=known.running + sum(state.n_running for state in states),
                slots=known.slots + sum(state.max_rows for state in states),
                ready=known.ready and pool.unready_reason() is None and model.manifest.name not in self._changed,
                files_changed=model.manifest.name in self._changed,
            )
        return list(found.values())

    def _serving(self) -> Iterator[tuple[str, Translator | Classifier | Embedder, Pool[Any]]]:
        """Each task of each model, and its pool."""
        yield from (("translation", model, pool) for model in self.translators for pool in (model.greedy, model.beam))
        yield from (("classification", model, model.pool) for model in self.classifiers)
        yield from (("embedding", model, model.pool) for model in self.embedders)
        yield from (("attention", model, model.attention_pool) for model in self if model.attention_pool is not None)


def load_models(settings: Settings, metrics: Metrics, loader: Loader | None = None) -> Models:
    """The models that the settings name, not started yet.

    Args:
        loader: that has been begun.

    Raises:
        StartRefused: an artifact or the provider is not as it should be.
    """
    if settings.loops == 0:
        return models_here(configured_artifacts(settings), settings, metrics)
    loader = loader or Loader(settings)
    loader.remote.on_worker_end = metrics.loop_ended
    try:
        # While it loads:
        tokenizers = _tokenizers(loader.artifacts, read_tokenizer_files(loader.artifacts))
        canonical("en")  # reads the tables of languages
        loaded = loader.wait()
        loaded.announce()
        return models_of(loaded, settings, metrics, loader, tokenizers)
    except BaseException:
        loader.end()
        raise


def models_here(artifacts: dict[str, Artifact], settings: Settings, metrics: Metrics) -> Models:
    """Models that run in one loop, a thread of this process.

    Raises:
        StartRefused: an artifact or the provider is not as it should be.
    """
    source = pkgutil.resolve_name(SOURCE)(artifacts, settings).resolved()
    engines = {name: engine for model in artifacts for name, engine in source.load(model, alone=True).items()}
    loop = Loop(engines, metrics.count, settings.probe_interval_s)
    model_infos = {model: source.model_info(model) for model in artifacts}
    loaded = LoadedModels(artifacts, model_infos, [], read_tokenizer_files(artifacts))
    loaded.announce()
    return _models(loaded, [loop], settings, metrics, None, _tokenizers(artifacts, loaded.tokenizer_files))


def models_of(
    loaded: LoadedModels,
    settings: Settings,
    metrics: Metrics,
    loader: Loader | None = None,
    tokenizers: Mapping[str, Tokenizer] | None = None,
) -> Models:
    """Models that run in loops which are processes. Nothing is read from disk: files may have changed since.

    Args:
        loader: of the loops, if they end with these models.
        tokenizers: by model, if they have been read.

    Raises:
        ArtifactRefused: a tokenizer is of no kind that is served here.
    """
    loops = [RemoteWorker(path, metrics.count) for path in loaded.paths]
    tokenizers = tokenizers or _tokenizers(loaded.artifacts, loaded.tokenizer_files)
    return _models(loaded, loops, settings, metrics, loader, tokenizers)


def _tokenizers(artifacts: Mapping[str, Artifact], files: TokenizerFiles) -> dict[str, Tokenizer]:
    """Raises ArtifactRefused: one is of no kind that is served here."""
    return {name: _tokenizer(artifact, files[name]) for name, artifact in artifacts.items()}


def _tokenizer(artifact: Artifact, files: Mapping[str, bytes]) -> Tokenizer:
    manifest = artifact.manifest
    vocabulary, special = None, set[int]()
    if VOCABULARY in files:
        vocabulary = Vocabulary.of(files[VOCABULARY], manifest.special_tokens.unk)
        special.update(manifest.special_tokens.model_dump().values(), *(one.target_prefix for one in manifest.targets))
    # Encoders that come with special tokens of their own were trained on texts as they are.
    as_it_is = manifest.task == "embedding" or manifest.pooling == "first"
    return Tokenizer(artifact.path(TOKENIZER), files[TOKENIZER], vocabulary, special, as_it_is)


def _models(
    loaded: LoadedModels,
    loops: SequenceOf[Loop | RemoteWorker],
    settings: Settings,
    metrics: Metrics,
    loader: Loader | None,
    tokenizers: Mapping[str, Tokenizer],
) -> Models:
    translators, classifiers, embedders = [], [], []
    for name, artifact in loaded.artifacts.items():
        manifest, tokenizer, provider = artifact.manifest, tokenizers[name], loaded.model_infos[name].provider

        def pool(kind: str, task: str, name: str = name) -> Pool[Any]:
            task_metrics = metrics.of_task(task)
            return Pool(f"{name}/{kind}", loops, task_metrics, settings.max_sequences, settings.max_waiting)

        attention = pool("attention", "attention"), settings.max_attention_weights
        if manifest.task == "translation":
            greedy, beam = pool("greedy", "translation"), pool("beam", "translation")
            slots = slots_of(manifest.slots, tokenizer)
            shown = settings.max_shown_tokens
            translators.append(Translator(manifest, provider, tokenizer, greedy, beam, *attention, shown, slots))
        elif manifest.task == "classification":
            classifying = pool("classification", "classification")
            evidence = settings.max_evidence_tokens
            classifiers.append(Classifier(manifest, provider, tokenizer, classifying, *attention, evidence))
        embedding = pool("embedding", "embedding"), settings.max_embedding_numbers
        of_embedder = attention if manifest.task == "embedding" else ()
        embedders.append(Embedder(manifest, provider, tokenizer, *embedding, *of_embedder))
    watch = Watch(loaded.artifacts.values())
    ordered = bool(settings.models)
    return Models(translators, classifiers, embedders, loops, loader, watch, ordered, metrics)


def _languages(embedders: list[Embedder]) -> str:
    found = []
    for embedder in embedders:
        names = sorted(embedder.languages.by_name)
        found.append(f"{some(names)} ({embedder.manifest.name})" if names else embedder.manifest.name)
    return ", ".join(found)
