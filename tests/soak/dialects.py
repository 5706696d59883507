"""Requests in the interfaces of other services."""

import json
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from tests.soak.http import JSON, Message, json_message
from tests.soak.models import Served
from tests.soak.requests import Make, Needs, Request
from tests.soak.texts import Texts

FORM = ("content-type", "application/x-www-form-urlencoded")
CONTENT_TYPE = ("content-type", JSON)
INFERENCE, HUGGING_FACE = "/v2/models/{name}", "/models/{name}"


class Dialects:
    """Makes requests of each dialect."""

    def __init__(self, served: Served, texts: Texts, random: Random) -> None:
        self._served, self._texts, self._random = served, texts, random

    def makers(self) -> Iterator[tuple[float, Make]]:
        """Yield how often each kind comes, and what makes one."""
        yield from self._deepl()
        yield from self._libretranslate()
        yield from self._open_inference()
        yield from self._hugging_face()
        yield from self._openai()
        yield from self._google()
        yield from self._azure()
        yield from self._amazon()
        yield from self._small_protocols()
        if self._served.ranker is not None:
            yield from self._cohere()

    def _deepl(self) -> Iterator[tuple[float, Make]]:
        texts = self._texts
        pair = {"source_lang": "EN", "target_lang": "FR"}
        yield 4, lambda: _post("deepl", "/v2/translate", text=texts.texts(), **pair)
        yield 2, lambda: _post("deepl", "/v2/translate", text=[texts.html()], tag_handling="html", **pair)
        yield 2, lambda: _form("deepl", "/v2/translate", text=texts.text(), **pair)
        yield 1, lambda: _get("deepl", "/v2/languages", "/v2/languages?type=target")
        yield 1, lambda: _get("deepl", "/v2/glossary-language-pairs")

    def _libretranslate(self) -> Iterator[tuple[float, Make]]:
        texts, path = self._texts, "/libretranslate/translate"
        pair = {"source": "en", "target": "fr"}
        yield 3, lambda: _post("libretranslate", path, q=texts.texts(), **pair)
        yield 2, lambda: _form("libretranslate", path, q=texts.text(), alternatives="2", **pair)
        yield 2, lambda: _post("libretranslate", "/libretranslate/detect", q=texts.text())
        yield 1, lambda: _get("libretranslate", "/libretranslate/languages")

    def _open_inference(self) -> Iterator[tuple[float, Make]]:
        served = self._served
        yield 3, lambda: self._infer(served.translator, parameters={"source": "en", "target": "fr"})
        yield 2, lambda: self._infer(served.classifier)
        yield 2, lambda: self._generate(served.translator)
        yield 1, lambda: _get("open_inference", INFERENCE, f"/v2/models/{served.translator}")
        yield 1, lambda: _get("open_inference", "/v2")

    def _hugging_face(self) -> Iterator[tuple[float, Make]]:
        texts, served = self._texts, self._served
        task = f"{HUGGING_FACE}/pipeline/{{task}}"
        yield 3, lambda: _post("hugging_face", f"/models/{served.translator}", HUGGING_FACE, inputs=texts.texts())
        yield 2, lambda: _post("hugging_face", f"/models/{served.classifier}", HUGGING_FACE, inputs=texts.text())
        of_states = f"/models/{served.translator}/pipeline/feature-extraction"
        yield 2, lambda: _post("hugging_face", of_states, task, inputs=texts.text())
        predict = f"/models/{served.classifier}/predict"
        yield 2, lambda: _post("hugging_face", predict, f"{HUGGING_FACE}/predict", inputs=texts.sentence())
        yield 1, lambda: _get("hugging_face", f"{HUGGING_FACE}/info", f"/models/{served.classifier}/info")

    def _openai(self) -> Iterator[tuple[float, Make]]:
        texts, served = self._texts, self._served
        yield 3, lambda: _post("openai", "/v1/embeddings", input=texts.texts(), model=served.embedder)
        yield 1, lambda: _get("openai", "/v1/models")

    def _google(self) -> Iterator[tuple[float, Make]]:
        texts, v2, v3 = self._texts, "/google/language/translate/v2", "/google/v3/projects"
        pair = {"source": "en", "target": "fr", "format": "text"}
        yield 2, lambda: _post("google", v2, q=texts.texts(), **pair)
        yield 1, lambda: _form("google", v2, q=texts.text(), **pair)
        yield 1, lambda: _get("google", f"{v2}/languages", f"{v2}/languages?target=de")
        route, path = f"{v3}/{{parent}}:translateText", f"{v3}/p/locations/l:translateText"
        fields = {"sourceLanguageCode": "en", "targetLanguageCode": "fr", "mimeType": "text/plain"}
        yield 2, lambda: _post("google", path, route, contents=texts.texts(), **fields)

    def _azure(self) -> Iterator[tuple[float, Make]]:
        query = "?api-version=3.0&from=en&to=fr&includeSentenceLength=true"
        yield 2, lambda: self._inputs("/azure/translate", query)
        yield 1, lambda: self._inputs("/azure/breaksentence", "?api-version=3.0&language=en")
        yield 1, lambda: _get("azure", "/azure/languages", "/azure/languages?api-version=2026-06-06")

    def _inputs(self, path: str, query: str) -> Request:
        body = [{"Text": text} for text in self._texts.texts()]
        return Request(
            "azure", "azure", path, Message("POST", path + query, json.dumps(body).encode(), (CONTENT_TYPE,))
        )

    def _amazon(self) -> Iterator[tuple[float, Make]]:
        header = ("x-amz-target", "AWSShineFrontendService_20170701.TranslateText")

        def ask() -> Request:
            body = {"Text": self._texts.text(), "SourceLanguageCode": "en", "TargetLanguageCode": "fr"}
            message = Message("POST", "/aws", json.dumps(body).encode(), (CONTENT_TYPE, header))
            return Request("amazon", "amazon", "/aws", message)

        yield 2, ask

    def _small_protocols(self) -> Iterator[tuple[float, Make]]:
        texts, pair = self._texts, {"from": "en", "to": "fr"}
        yield 1, lambda: _post("mtranserver", "/mtran/translate", text=texts.text(), **pair)
        yield 1, lambda: _post("mtranserver", "/mtran/translate/batch", texts=texts.texts(), **pair)
        languages = {"source_lang": "en", "target_lang": "fr"}
        yield 1, lambda: _post("mtranserver", "/immersive", text_list=texts.texts(), **languages)
        yield 1, lambda: _post("deeplx", "/deeplx/translate", text=texts.text(), **languages)
        route = "/lingva/api/v1/{source}/{target}/{query}"
        yield (
            1,
            lambda: Request(
                "lingva", "lingva", route, Message("GET", f"/lingva/api/v1/en/fr/{quote(texts.sentence())}")
            ),
        )

    def _cohere(self) -> Iterator[tuple[float, Make]]:
        for path in ("/v1/rerank", "/v2/rerank"):
            yield 2, partial(self._rerank, path)

    def _rerank(self, path: str) -> Request:
        texts, n = self._texts, self._random.randint(1, 3)
        return _post("cohere", path, query=texts.sentence(), documents=texts.texts(), top_n=n)

    def _infer(self, model: str, **fields: Any) -> Request:
        data = self._texts.texts()
        tensor = {"name": "text_input", "shape": [len(data)], "datatype": "BYTES", "data": data}
        return _post("open_inference", f"/v2/models/{model}/infer", f"{INFERENCE}/infer", inputs=[tensor], **fields)

    def _generate(self, model: str) -> Request:
        options = {"source": "en", "target": "fr", "beam_size": self._random.randint(1, 3)}
        path, route = f"/v2/models/{model}/generate", f"{INFERENCE}/generate"
        return _post("open_inference", path, route, text_input=self._texts.text(), parameters=options)


def _post(dialect: str, path: str, route: str | None = None, /, **fields: Any) -> Request:
    return Request(dialect, dialect, route or path, json_message("POST", path, fields))


def _form(dialect: str, path: str, /, **fields: str) -> Request:
    return Request(dialect, dialect, path, Message("POST", path, urlencode(fields).encode(), (FORM,)))


def _get(dialect: str, route: str, path: str | None = None) -> Request:
    return Request(dialect, dialect, route, Message("GET", path or route), Needs.SERVER)
