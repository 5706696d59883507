"""A set of models that were loaded together, and which of them a request means."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from service.base.artifact import Artifact, Stamp, stamp_of
from service.base.errors import InvalidFields, ModelRequired, RequestError, UnknownModel, UnsupportedOption
from service.base.metrics import Metrics, ModelState
from service.front.directions import Directions, some
from service.pool.loader import Loader
from service.pool.pool import Pool, Worker
from service.schemas.answers import UnnamedRequest
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation.translator import Translator
from service.text.languages import WantedLanguage

logger = logging.getLogger(__name__)

Model = Translator | Classifier | Embedder
Served = TypeVar("Served", Translator, Classifier, Embedder)


class Watch:
    """Compares the files of artifacts with what was read of them. Models that serve are in memory and do not change
    with their files, but a worker that starts later would refuse changed files."""

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._files = [
            _File(artifact, name, stamp) for artifact in artifacts for name, stamp in artifact.stamps.items()
        ]

    def changed(self) -> dict[str, list[str]]:
        """Return, by model, the files that differ from what was read. Only files that were written since are read."""
        changed: dict[str, list[str]] = {}
        for file in self._files:
            if file.has_changed():
                changed.setdefault(file.artifact.manifest.name, []).append(file.name)
        return changed


@dataclass
class _File:
    artifact: Artifact
    name: str
    stamp: Stamp | None
    differs: bool = False

    def has_changed(self) -> bool:
        stamp = stamp_of(self.artifact.path(self.name))
        if stamp != self.stamp:
            self.stamp, self.differs = stamp, not self.artifact.is_as_read(self.name)
        return self.differs


class Catalog:
    """Models that are loaded, started and stopped together. Of several models that fit a request, the first answers.

    Args:
        embedders: models that were made for embeddings, and the encoders of the translators and classifiers.
        workers: the processes that run the models.
        loader: the process that loaded the models; it ends when the models stop.
        watch: notices changes of the files that the models were loaded from.
        ordered: whether the settings list the models: then the first translator also answers a request without target,
            and the first encoder a request without source.
        metrics: counts the work of the models.
    """

    def __init__(
        self,
        translators: list[Translator],
        classifiers: list[Classifier],
        embedders: SequenceOf[Embedder] = (),
        workers: SequenceOf[Worker] = (),
        loader: Loader | None = None,
        watch: Watch | None = None,
        ordered: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.translation_metrics = self.metrics.of_task("translation")
        self.translators = translators
        self.classifiers = classifiers
        self.embedders = list(embedders)
        self._workers = workers
        self.n_users = 0
        """Requests that use the models now."""
        self._loader = loader
        self._watch = watch
        self._changed: dict[str, list[str]] = {}
        self._ordered = ordered
        self._directions: dict[str | None, Directions] = {
            translator.manifest.name: Directions([translator], translator.manifest.name, ordered)
            for translator in translators
        }
        if translators:
            self._directions[None] = Directions(translators, ordered=ordered)

    def __iter__(self) -> Iterator[Model]:
        yield from self.translators
        yield from self.classifiers
        yield from (embedder for embedder in self.embedders if embedder.manifest.task == "embedding")

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def drain(self) -> None:
        """Take no new requests; accepted requests are still answered, and may still ask for attention."""
        for task, _, pool in self._serving():
            if task != "attention":
                pool.drain()

    def stop(self, timeout_s: float) -> None:
        """Answer the accepted requests, within `timeout_s`."""
        self.drain()
        ends_at = time.monotonic() + timeout_s
        for worker in self._workers:
            worker.stop(max(0.0, ends_at - time.monotonic()))
        if self._loader is not None:
            self._loader.end()

    def unready_reason(self) -> str | None:
        """Why this server should get no requests now, model by model; None if it should."""
        reasons: dict[str, str] = {}
        for _, model, pool in self._serving():
            if (reason := pool.unready_reason()) is not None:
                reasons.setdefault(model.manifest.name, reason)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None

    def devices(self) -> dict[str, str | None]:
        """Return, for each GPU that the settings chose, why it takes no requests for a model; None if it takes all."""
        reasons: dict[str, str | None] = {}
        for _, model, pool in self._serving():
            for device, reason in pool.unready_reasons().items():
                if device is not None:
                    reasons[device] = reasons.get(device) or (reason and f"{model.manifest.name}: {reason}")
        return reasons

    def proof_ages(self) -> dict[str, float]:
        """Return how many seconds ago a forward pass of each model succeeded last, in any worker. Models that are not
        loaded have none."""
        proofs: dict[str, float] = {}
        for _, model, pool in self._serving():
            for state in pool.states():
                if state.proved_at is not None:
                    age_s = max(0.0, time.monotonic() - state.proved_at)
                    proofs[model.manifest.name] = min(age_s, proofs.get(model.manifest.name, age_s))
        return proofs

    def look_at_files(self) -> None:
        """Notice which files have changed, for the log and a metric alone: the models in memory are those that were
        proved, while a service that starts anew would load the changed files."""
        changed = self._watch.changed() if self._watch is not None else {}
        for name in changed.keys() - self._changed.keys():
            logger.error(
                "the files of %s have changed since they were read: %s. It goes on with what it has read; "
                "POST /models/reload or SIGHUP takes the new ones",
                name,
                ", ".join(changed[name]),
            )
        self._changed = changed

    def named(self, name: str) -> Model:
        """Return the model of this name. Raises UnknownModel: there is none."""
        by_name = {model.manifest.name: model for model in self}
        if name not in by_name:
            raise UnknownModel(f"No model is named {name!r}; available: {', '.join(by_name)}")
        return by_name[name]

    def directions(self, name: str | None) -> Directions:
        """Return the language pairs of all translators, or of one. Raises UnknownModel: no translation model has this
        name, or there are none."""
        if name not in self._directions:
            raise self._unknown(name, self.translators, "translate")
        return self._directions[name]

    def classifier(self, name: str | None, pairs: bool = False) -> Classifier:
        """Return the first classifier that fits. Rerankers come after all others. `pairs`: whether it must read pairs
        of texts. Raises UnknownModel: no classification model has this name, or there are none. Raises
        UnsupportedOption: it reads single texts only, or all do."""
        named = self._named(name, self.classifiers, "classify")
        fitting = [model for model in named if model.manifest.pairs or not pairs]
        if not fitting:
            names = ", ".join(model.manifest.name for model in self.classifiers if model.manifest.pairs) or "none"
            which = name if name is not None else "every classifier here"
            raise UnsupportedOption(f"`text_pair` is not supported: {which} reads single texts; available: {names}")
        return next((model for model in fitting if not model.is_reranker), fitting[0])

    def reranker(self, name: str | None) -> Classifier:
        """Return the first model that scores pairs of texts. Raises UnknownModel: there is none, or none of this
        name."""
        return self._named(name, self.rerankers, "rerank")[0]

    @property
    def rerankers(self) -> list[Classifier]:
        """The models that give a pair of texts one score."""
        return [model for model in self.classifiers if model.is_reranker]

    def embedder(self, name: str | None, source: str | None) -> Embedder:
        """Return the first embedder that fits: the encoder of a translator that reads the language `source`, or without
        a source a model that was made for embeddings. Raises UnknownModel: no model has this name. Raises
        InvalidFields: no translator reads the language. Raises ModelRequired: without a source several models fit, none
        made for embeddings."""
        embedders = self._named(name, self.embedders, "embed")
        if source is None:
            made_for_it = [model for model in embedders if model.manifest.task == "embedding"]
            if len(embedders) > 1 and not made_for_it and not self._ordered:
                raise ModelRequired(f"`model` is required; available: {_languages(embedders)}")
            fitting = made_for_it or embedders
        else:
            forms = WantedLanguage.of_sources(source)
            readers = ([model for model in embedders if model.languages.named(form)] for form in forms)
            fitting = next(filter(None, readers), [])
        if not fitting:
            available = _languages(embedders) if any(model.languages.by_name for model in embedders) else "none"
            message = f"must be a language that a model reads, not {source}; available: {available}"
            raise InvalidFields([(("source",), message)])
        return fitting[0]

    def default_for(self, model: Model) -> list[UnnamedRequest]:
        """Return the kinds of requests without a model's name that this model answers."""
        name = model.manifest.name
        answered: list[UnnamedRequest] = []
        if self.translators and name in self.directions(None).first_models:
            answered.append("translate")
        choices: dict[UnnamedRequest, Callable[[], Model]] = {
            "classify": lambda: self.classifier(None),
            "classify_pairs": lambda: self.classifier(None, pairs=True),
            "rerank": lambda: self.reranker(None),
            "embed": lambda: self.embedder(None, None),
        }
        for request, choose in choices.items():
            with suppress(RequestError):  # no model, or several, could answer it
                if choose().manifest.name == name:
                    answered.append(request)
        return answered

    def _named(self, name: str | None, models: list[Served], verb: str) -> list[Served]:
        """Raises UnknownModel: no model has this name, or there are none."""
        if named := [model for model in models if name in (None, model.manifest.name)]:
            return named
        raise self._unknown(name, models, verb)

    def _unknown(self, name: str | None, models: SequenceOf[Model], verb: str) -> UnknownModel:
        names = ", ".join(model.manifest.name for model in models) or "none"
        tasks: dict[str, SequenceOf[Model]]
        tasks = {"translate": self.translators, "classify": self.classifiers, "embed": self.embedders}
        tasks["rerank"] = self.rerankers
        able = [task for task, models in tasks.items() if any(model.manifest.name == name for model in models)]
        return UnknownModel(
            f"No model {f'named {name!r} ' if name is not None else ''}can {verb} here; available: {names}"
            + (f" ({name} can {' and '.join(able)})" if able else "")
        )

    def states(self) -> list[ModelState]:
        """Return the state of each model in each of its tasks, for the gauges."""
        of_models: dict[tuple[str, str], ModelState] = {}
        for task, model, pool in self._serving():
            states = pool.states()
            key = model.manifest.name, task
            known = of_models.get(key) or ModelState(*key, model.manifest.precision, model.provider)
            of_models[key] = replace(
                known,
                waiting=known.waiting + sum(state.n_waiting for state in states),
                running=known.running + sum(state.n_running for state in states),
                rows=known.rows + sum(state.max_rows for state in states),
                ready=known.ready and pool.unready_reason() is None,
                files_changed=model.manifest.name in self._changed,
            )
        return list(of_models.values())

    def _serving(self) -> Iterator[tuple[str, Model, Pool[Any]]]:
        """Yield each task of each model, and its pool."""
        yield from (("translation", model, pool) for model in self.translators for pool in (model.greedy, model.beam))
        yield from (("classification", model, model.pool) for model in self.classifiers)
        yield from (("embedding", model, model.pool) for model in self.embedders)
        yield from (("attention", model, model.attention_pool) for model in self if model.attention_pool is not None)


def _languages(embedders: list[Embedder]) -> str:
    listed = []
    for embedder in embedders:
        names = sorted(embedder.languages.by_name)
        listed.append(f"{some(names)} ({embedder.manifest.name})" if names else embedder.manifest.name)
    return ", ".join(listed)
