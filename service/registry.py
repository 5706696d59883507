"""The models that serve, and which of them a request means."""

import time
from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from typing import Any, TypeVar

from service.artifact import Direction
from service.engine.pool import Pool
from service.errors import NotAcceptable, UnknownModel
from service.metrics import ModelState
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation import Translator

Served = TypeVar("Served", Translator, Classifier, Embedder)


class Models:
    """Every model of this process, started and stopped together.

    Args:
        embedders: the encoders of the translators and classifiers, for requests that want embeddings.
    """

    def __init__(
        self, translators: list[Translator], classifiers: list[Classifier], embedders: SequenceOf[Embedder] = ()
    ) -> None:
        self.translators = translators
        self.classifiers = classifiers
        self.embedders = list(embedders)

    def __iter__(self) -> Iterator[Translator | Classifier]:
        yield from self.translators
        yield from self.classifiers

    def start(self) -> None:
        for _, _, pool in self._serving():
            pool.start()

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered, and may still ask for attention."""
        for model in (*self, *self.embedders):
            model.pool.drain()

    def stop(self, timeout_s: float) -> None:
        """Answer the accepted requests, within `timeout_s`."""
        self.drain()
        ends_at = time.monotonic() + timeout_s
        for _, _, pool in self._serving():
            pool.stop(max(0.0, ends_at - time.monotonic()))

    def wait_until_warm(self, timeout_s: float) -> bool:
        """Wait for at most `timeout_s`; whether every engine has tried its first forward pass."""
        ends_at = time.monotonic() + timeout_s
        return all(pool.wait_until_warm(max(0.0, ends_at - time.monotonic())) for _, _, pool in self._serving())

    def unready_reason(self) -> str | None:
        """Why this process should get no requests now, model by model; None if it should."""
        reasons: dict[str, str] = {}
        for _, model, pool in self._serving():
            if (reason := pool.unready_reason()) is not None:
                reasons.setdefault(model.manifest.name, reason)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None

    def translator(self, name: str | None, source: str | None, target: str | None) -> tuple[Translator, Direction]:
        """The one model and direction that fit.

        Raises:
            UnknownModel: no translation model has this name.
            NotAcceptable: none translates so, or several do; the message names them.
        """
        translators = _named(name, self.translators, "translate")
        served = [(translator, direction) for translator in translators for direction in translator.manifest.directions]
        fitting = [
            (translator, direction)
            for translator, direction in served
            if source in (None, direction.source) and target in (None, direction.target)
        ]
        if not fitting:
            wanted = f"from {source or 'any language'} to {target or 'any language'}"
            nobody = "no model translates" if name is None else f"{name} does not translate"
            raise NotAcceptable(f"{nobody} {wanted}; there are {_directions(served)}")
        if len(fitting) > 1:
            raise NotAcceptable(f"several could serve, name model, source and target: {_directions(fitting)}")
        return fitting[0]

    def classifier(self, name: str | None) -> Classifier:
        """The one model that fits.

        Raises:
            UnknownModel: no classification model has this name, or there are none.
            NotAcceptable: there are several; the message names them.
        """
        classifiers = _named(name, self.classifiers, "classify")
        if len(classifiers) > 1:
            names = ", ".join(classifier.manifest.name for classifier in classifiers)
            raise NotAcceptable(f"several models could serve, name one: {names}")
        return classifiers[0]

    def embedder(self, name: str | None, source: str | None) -> Embedder:
        """The one model that fits; a language chooses among translators.

        Raises:
            UnknownModel: no model has this name.
            NotAcceptable: none reads the language, or several models could serve; the message names them.
        """
        embedders = _named(name, self.embedders, "embed")
        fitting = [embedder for embedder in embedders if source is None or source in embedder.languages]
        if not fitting:
            raise NotAcceptable(f"no translator here reads {source}; there are {_languages(embedders)}")
        if len(fitting) > 1:
            raise NotAcceptable(f"several models could serve, name model or source: {_languages(fitting)}")
        return fitting[0]

    def states(self) -> list[ModelState]:
        """For the gauges: a model once for each task that it serves."""
        return [
            ModelState(
                model.manifest.name,
                task,
                model.manifest.precision,
                model.provider,
                waiting=sum(engine.n_waiting for engine in pool.engines),
                running=sum(engine.n_running for engine in pool.engines),
                slots=sum(engine.slots for engine in pool.engines),
            )
            for task, model, pool in self._serving()
        ]

    def _serving(self) -> Iterator[tuple[str, Translator | Classifier | Embedder, Pool[Any]]]:
        """Each task of each model and its pool, in the order in which they stop: attention is read after decoding."""
        yield from ((model.manifest.task, model, model.pool) for model in self)
        yield from (("embedding", model, model.pool) for model in self.embedders)
        yield from (("attention", model, model.attention_pool) for model in self)


def _named(name: str | None, models: list[Served], verb: str) -> list[Served]:
    named = [model for model in models if name in (None, model.manifest.name)]
    if not named:
        names = ", ".join(model.manifest.name for model in models) or "none"
        raise UnknownModel(
            f"no model {f'named {name!r} ' if name is not None else ''}can {verb} here; there are {names}"
        )
    return named


def _directions(served: list[tuple[Translator, Direction]]) -> str:
    return ", ".join(f"{direction.source}-{direction.target} ({t.manifest.name})" for t, direction in served)


def _languages(embedders: list[Embedder]) -> str:
    named = [(", ".join(sorted(embedder.languages)), embedder.manifest.name) for embedder in embedders]
    return ", ".join(f"{languages} ({name})" if languages else name for languages, name in named)
