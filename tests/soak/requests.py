"""The requests of a storm: what each asks, which route answers it, and what of the service it needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import partial
from random import Random
from typing import Any

from tests.soak.http import Message, json_message
from tests.soak.models import Served
from tests.soak.texts import Texts

EVENTS, LINES = "text/event-stream", "application/x-ndjson"


class Needs(Flag):
    """What a request needs, and so which faults it feels."""

    SERVER = auto()
    MODELS = auto()
    DATABASE = auto()


@dataclass(frozen=True)
class Request:
    """One request, with the labels that metrics give it.

    Attributes:
        route: the label of its route; "" where the server answers by itself, which no metric counts.
        expires: whether its deadline is so short that 504 is right. Then `patient` is the same without a deadline.
        of_version: whether a model answers it that is replaced now and then.
    """

    kind: str
    dialect: str
    route: str
    message: Message
    needs: Needs = Needs.SERVER | Needs.MODELS
    streams: bool = False
    expires: bool = False
    patient: "Request | None" = None
    of_version: bool = False

    def with_headers(self, **headers: str) -> "Request":
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, message=replace(self.message, headers=(*self.message.headers, *more)))


Make = Callable[[], Request]


class Native:
    """Requests of the native interface."""

    def __init__(self, served: Served, texts: Texts, random: Random) -> None:
        self._served, self._texts, self._random = served, texts, random

    def makers(self) -> Iterator[tuple[float, Make]]:
        """Yield how often each kind comes, and what makes one."""
        served, texts, random = self._served, self._texts, self._random
        model = served.translator
        yield 12, lambda: self._translate("a text", text=texts.text())
        yield 8, lambda: self._translate("texts", text=texts.texts(), beam_size=random.randint(1, 4))
        yield 2, lambda: self._translate("alternatives", text=texts.text(1), beam_size=4, alternatives=2)
        yield 2, lambda: self._translate("alignment", text=texts.text(1), alignment=True)
        yield 2, lambda: self._translate("attention", text=texts.text(1), attention={"kinds": ["cross"]})
        yield 2, lambda: self._translate("HTML", text=texts.html(), format="html", checks=True)
        yield 2, lambda: self._translate("kept spans", text=f"{texts.sentence()} {{name}} 42", keep=["dog"])
        yield 2, lambda: self._translate("a glossary", text=texts.text(), glossary={"dog": "clebs"})
        yield 1, lambda: self._translate("a named model", text=texts.text(), model=model)
        yield 4, lambda: self._stream(texts.texts(), EVENTS)
        yield 2, lambda: self._stream(texts.texts(), LINES)
        yield 5, lambda: self._of_models("/classify", text=texts.text(), model=served.classifier)
        yield 2, lambda: self._of_models("/classify", text=texts.text(1), evidence=True, model=served.classifier)
        yield 4, lambda: self._of_models("/embed", text=texts.text(), model=served.embedder)
        yield 2, lambda: self._of_models("/embed", text=texts.text(1), model=model, pooling="none")
        yield 3, lambda: self._of_models("/detect", text=texts.texts())
        if served.pivot is not None:
            source, target = served.pivot
            yield 2, lambda: self._translate("two models", text=texts.text(), source=source, target=target)
        if served.ranker is not None:
            yield 3, lambda: self._of_models("/rerank", query=texts.sentence(), texts=texts.texts())
        if served.versioned is not None:
            yield 3, lambda: replace(self._translate("a version", text=texts.text(), target="es"), of_version=True)
        yield 4, lambda: self._expiring(texts.texts())
        for path in ("/models", "/languages", "/", "/openapi.json", "/health/live"):
            yield 1, partial(Request, f"GET {path}", "native", path, Message("GET", path), Needs.SERVER)

    def _translate(self, what: str, **fields: Any) -> Request:
        body = {"source": "en", "target": "fr"} | fields
        return Request(f"translate: {what}", "native", "/translate", json_message("POST", "/translate", body))

    def _of_models(self, path: str, **fields: Any) -> Request:
        return Request(path.removeprefix("/"), "native", path, json_message("POST", path, fields))

    def _stream(self, text: list[str], accept: str) -> Request:
        return replace(self._translate("a stream", text=text).with_headers(accept=accept), streams=True)

    def _expiring(self, text: list[str]) -> Request:
        made = self._translate("an expired one", text=text, timeout_s=self._random.choice([1e-9, 1e-4, 1e-3]))
        return replace(made, expires=True, patient=self._translate("an expired one", text=text))


def choose(makers: list[tuple[float, Make]], random: Random, n: int) -> list[Request]:
    """Make requests of random kinds."""
    weights = [weight for weight, _ in makers]
    return [make() for make in random.choices([make for _, make in makers], weights, k=n)]
