"""Requests that must be refused, and those for which a model computes no numbers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.soak.http import JSON, Message, form_message, json_message
from tests.soak.models import Served
from tests.soak.requests import Make, Needs, Request
from tests.soak.texts import Texts

MAX_BODY_BYTES, MAX_DOCUMENT_BYTES, MAX_TEXTS = 65_536, 262_144, 64
"""Limits of the service in a storm."""
TOO_LONG = 60_000
"""Characters of a text that is too long, in a body that is not."""
UNMATCHED = "unmatched"

PATHS = {
    "/translate": "native",
    "/classify": "native",
    "/embed": "native",
    "/glossaries": "native",
    "/memories": "native",
    "/v2/translate": "deepl",
    "/v3/glossaries": "deepl",
    "/libretranslate/translate": "libretranslate",
    "/v1/embeddings": "openai",
    "/v2/rerank": "cohere",
    "/google/language/translate/v2": "google",
    "/azure/translate": "azure",
    "/aws": "amazon",
    "/mtran/translate": "mtranserver",
    "/deeplx/translate": "deeplx",
}
"""Routes that read JSON, and their dialects."""
BAD_BODIES = [b"", b"{", b"[]", b'{"text": ', b"\xff\xfe{}", b"nul", b'{"text": "a"} {}', b"[" * 5000]
BAD_FIELDS: list[dict[str, Any]] = [
    {"txet": "the dog"},
    {"text": 5},
    {"text": ""},
    {"text": " "},
    {"text": ["the dog", ""]},
    {"text": "\ud800"},
    {"text": "the dog", "target": "xx"},
    {"text": "the dog", "target": "fr", "source": "xx"},
    {"text": "the dog", "target": "fr", "beam_size": 0},
    {"text": "the dog", "target": "fr", "beam_size": "4"},
    {"text": "the dog", "target": "fr", "alternatives": 9},
    {"text": "the dog", "target": "fr", "keep": [{"pattern": "("}]},
    {"text": "the dog", "target": "fr", "timeout_s": 1e9},
    {"text": "the dog", "target": "fr", "glossary_id": "0" * 32},
    {"text": "the dog", "target": "fr", "memory_id": "0" * 32},
    {"name": "a", "source": "en", "target": "en-GB"},
    {"text": "the dog", "model": "no such model"},
    {"name": "", "dictionaries": [{"source": "en", "target": "fr", "entries": {"": ""}}]},
]
BAD_HEADS = [b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"POST /translate HTTP/1.1\r\ncontent-length: x\r\n\r\n"]


class Wrong:
    """Makes requests that must be refused."""

    def __init__(self, served: Served, texts: Texts) -> None:
        self._served, self._texts = served, texts

    def makers(self) -> Iterator[tuple[float, Make]]:
        """Yield how often each kind comes, and what makes one."""
        for path, dialect in PATHS.items():
            for body in BAD_BODIES:
                yield 0.2, _always(_post("a broken body", dialect, path, body))
            for fields in BAD_FIELDS:
                yield 0.2, _always(_post("wrong fields", dialect, path, json.dumps(fields).encode()))
        yield 1, _always(Request("a wrong path", "native", UNMATCHED, Message("GET", "/nothing/here"), Needs.SERVER))
        yield 1, _always(Request("a wrong method", "native", "/translate", Message("GET", "/translate"), Needs.SERVER))
        untyped = Message("POST", "/translate", b'{"text": "a"}', (("content-type", "text/csv"),))
        yield 1, _always(Request("a wrong type", "native", "/translate", untyped, Needs.SERVER))
        yield from self._oversized()
        if self._served.has_nan:
            yield from self._without_numbers()

    def _oversized(self) -> Iterator[tuple[float, Make]]:
        kind = "an oversized one"
        large = json.dumps({"text": "a" * MAX_BODY_BYTES}).encode()
        for path in ("/translate", "/v2/translate", "/libretranslate/translate", "/v1/embeddings"):
            yield 1, _always(_post(kind, PATHS[path], path, large))
        many = {"text": ["a dog"] * (MAX_TEXTS + 1), "source": "en", "target": "fr"}
        yield 1, _always(_post(kind, "native", "/translate", json.dumps(many).encode()))
        long = {"text": "a" * TOO_LONG, "source": "en", "target": "fr"}
        yield 1, _always(_post(kind, "native", "/translate", json.dumps(long).encode()))
        document = form_message(
            "/translate/document", "large.txt", b"a dog.\n" * (MAX_DOCUMENT_BYTES // 7), target="fr"
        )
        yield 1, _always(Request(kind, "native", "/translate/document", document, Needs.SERVER))

    def _without_numbers(self) -> Iterator[tuple[float, Make]]:
        served, texts = self._served, self._texts
        kind = "NaN"

        def of(path: str, dialect: str, **fields: Any) -> Request:
            return Request(kind, dialect, path, json_message("POST", path, fields))

        pair = {"source": "en", "target": "fr"}
        yield 2, lambda: of("/translate", "native", text=texts.with_nan(), beam_size=1, **pair)
        yield 2, lambda: of("/translate", "native", text=[texts.text(), texts.with_nan()], beam_size=3, **pair)
        yield 1, lambda: of("/classify", "native", text=texts.with_nan(), model=served.classifier)
        yield 1, lambda: of("/libretranslate/translate", "libretranslate", q=texts.with_nan(), **pair)


def _post(kind: str, dialect: str, path: str, body: bytes) -> Request:
    return Request(kind, dialect, path, Message("POST", path, body, (("content-type", JSON),)), Needs.SERVER)


def _always(request: Request) -> Make:
    return lambda: replace(request)
