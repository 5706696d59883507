"""HTTP: bytes of a connection, with requests of every route and dialect."""

import gzip
import json
import re
import struct
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from service.http.problems import codes
from tests.fuzz.http_service import LIMITS, Service
from tests.fuzz.mutation import mutate_lines
from tests.fuzz.structures import repeated
from tests.fuzz.target import MutateBytes, Target

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
LENGTH = re.compile(rb"(?<=\r\nContent-Length: )\d+", re.IGNORECASE)
STATUSES = {*(status for _, status in codes()), 100, 200, 201, 202, 204, 206, 302, 304, 307, 404, 405, 426} - {500}


@cache
def _service() -> Service:
    return Service()


def read(data: bytes) -> Iterator[str]:
    """Send bytes to a service. Raises AssertionError: an answer has a status that no page names."""
    answer = _service().answer(data)
    yield "answered"
    assert not answer or answer.startswith(b"HTTP/1.1 "), f"the answer begins with {answer[:20]!r}"
    found = STATUS.match(answer)
    assert found is None or int(found[1]) in STATUSES, f"the status is {found[1]!r}: {answer[-500:]!r}"


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: attend", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def post(path: str, value: Any, *headers: str) -> bytes:
    return request("POST", path, json.dumps(value).encode(), "Content-Type: application/json", *headers)


def multipart(path: str, fields: dict[str, str], name: str, file: bytes) -> bytes:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()]
    parts.append(f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
    body = "".join(parts).encode() + file + b"\r\n--b--\r\n"
    return request("POST", path, body, "Content-Type: multipart/form-data; boundary=b")


def tensors(*texts: bytes) -> bytes:
    raw = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    tensor = {
        "name": "text_input",
        "shape": [len(texts)],
        "datatype": "BYTES",
        "parameters": {"binary_data_size": len(raw)},
    }
    wanted = [{"name": "text_output", "parameters": {"binary_data": True}}]
    head = json.dumps({"id": "1", "inputs": [tensor], "outputs": wanted, "parameters": {"timeout": 1_000_000}}).encode()
    return request("POST", "/v2/models/tiny-en-fr/infer", head + raw, f"Inference-Header-Content-Length: {len(head)}")


ENTRIES = {"source_lang": "en", "target_lang": "fr", "entries": "dog\tchien", "entries_format": "tsv"}
DICTIONARY = {"source": "en", "target": "fr", "entries": {"dog": "chien"}}
EN_FR = {"source": "en", "target": "fr"}
INPUT = {"name": "text_input", "shape": [1, 2], "datatype": "BYTES", "data": [["a dog", "a cat"]]}
BODIES: tuple[tuple[str, Any], ...] = (
    ("/translate", {"text": ["the red <b>dog</b>", "a {n}"], **EN_FR, "format": "html", "beam_size": 2, "checks": True}),
    ("/translate", {"text": ["the dog runs. a cat", "the cat"], "target_prefix": ["dog cat. ", None], "alternatives": 2, "alignment": True}),
    ("/translate", {"text": "the dog runs. a cat", "model": "tiny-en-fr", "alignment": True, "attention": True, "max_target_tokens": 9, "alternatives": 2, "beam_size": 3}),
    ("/translate", {"text": "<a>the dog</a>", "format": "xml", "tags": {"keep": ["a"], "blocks": ["b"]}, "glossary": {"dog": "chien"}}),
    ("/translate", {"text": "a", "timeout_s": 1, "keep": ["(?i)dog"], "glossary_id": "x"}),
    ("/detect", {"text": ["the dog", "le chien"]}),
    ("/classify", {"text": ["the dog"], "text_pair": ["a cat"], "evidence": True, "logits": True, "attention": True}),
    ("/classify", {"text": ["the dog"], "evidence": True, "logits": True}),
    ("/rerank", {"query": "a", "texts": ["b", "c"], "return_text": True, "raw_scores": True}),
    ("/embed", {"text": ["the dog"], "model": "tiny-en-fr", "dimensions": 4, "prompt": "query", "encoding": "base64", "normalize": True}),
    ("/glossaries", {"name": "a", "dictionaries": [DICTIONARY]}),
    ("/models/reload", {}),
    ("/libretranslate/translate", {"q": ["the dog"], "source": "auto", "target": "fr", "format": "html", "alternatives": 2, "api_key": ""}),
    ("/libretranslate/detect", {"q": "the dog"}),
    ("/libretranslate/suggest", {"q": "a", "s": "b", **EN_FR}),
    ("/v2/repository/index", {"ready": True}),
    ("/v2/models/tiny-en-fr/infer", {"id": "a", "inputs": [INPUT], "outputs": [{"name": "text_output"}], "parameters": {"beam_size": 2}}),
    ("/v2/models/tiny-sentiment/versions/1/infer", {"inputs": [INPUT]}),
    ("/v2/models/tiny-en-fr/generate", {"text_input": "the dog", "parameters": {"target": "fr"}}),
    ("/v2/translate", {"text": ["the <x>dog</x>"], "target_lang": "FR", "source_lang": "EN", "tag_handling": "xml", "split_sentences": "0",
                       "preserve_formatting": True, "ignore_tags": ["x"], "show_billed_characters": True}),
    ("/memories", {"name": "a", **EN_FR}),
    ("/memories/a/segments", {"segments": [{"source": "the dog", "target": "le chien", "context": "c", "author": "a"}]}),
    ("/translate", {"text": "the dog", "memory_id": "a,b", "memory_threshold": 50}),
    ("/v2/glossaries", {"name": "a", **ENTRIES}),
    ("/v3/glossaries", {"name": "a", "dictionaries": [ENTRIES]}),
    ("/v2/document/A/result", {"document_key": "b"}),
    ("/models/tiny-en-fr", {"inputs": ["the dog"], "parameters": {"src_lang": "en", "tgt_lang": "fr", "num_beams": 2}, "options": {"use_cache": False}}),
    ("/models/tiny-sentiment/pipeline/text-classification", {"inputs": {"text": "a", "text_pair": "b"}, "parameters": {"top_k": 2, "function_to_apply": "none"}}),
    ("/models/tiny-sentiment/predict", {"inputs": [["a", "b"]], "raw_scores": True, "truncate": True}),
    ("/models/tiny-sentiment/rerank", {"query": "a", "texts": ["b"]}),
    ("/v1/embeddings", {"input": ["the dog", "a"], "model": "tiny-en-fr", "encoding_format": "base64", "dimensions": 3, "user": "u"}),
    ("/v1/rerank", {"query": "a", "documents": ["b", {"text": "c"}], "model": "tiny-sentiment", "top_n": 1, "return_documents": True}),
    ("/google/language/translate/v2", {"q": ["the <b>dog</b>", ""], **EN_FR, "format": "html", "model": "nmt", "cid": []}),
    ("/language/translate/v2/detect", {"q": "the dog"}),
    ("/v3/projects/p/locations/l:translateText", {"contents": ["the dog"], "targetLanguageCode": "fr", "mimeType": "text/plain", "model": "general/nmt"}),
    ("/v3/projects/p:detectLanguage", {"content": "the dog"}),
    ("/azure/translate?api-version=3.0&to=fr&from=en&includeAlignment=true&includeSentenceLength=true", [{"Text": "the dog. a cat"}]),
    ("/azure/translate?api-version=2026-06-06", {"inputs": [{"text": "the dog", "targets": [{"language": "fr", "deploymentName": "general"}]}]}),
    ("/azure/breaksentence?api-version=3.0", [{"Text": "the dog. a cat"}]),
    ("/mtran/translate", {"from": "auto", "to": "fr", "text": "the dog", "html": True}),
    ("/mtran/hcfy", {"name": "a", "text": "the dog\na cat", "destination": ["法语", "英语"]}),
    ("/mtran/kiss", {"to": "fr", "texts": ["the dog", ""]}),
    ("/immersive", {"source_lang": "auto", "target_lang": "fr", "text_list": ["the <b0>dog</b0>"]}),
    ("/deeplx/translate", {"text": "the dog", "source_lang": "", "target_lang": "FR", "tag_handling": "html"}),
)  # fmt: skip
TO_AMAZON = "X-Amz-Target: AWSShineFrontendService_20170701."
AMAZON = (
    ("TranslateText", {"Text": "the dog", "SourceLanguageCode": "auto", "TargetLanguageCode": "fr", "TerminologyNames": ["a"]}),
    ("TranslateDocument", {"Document": {"Content": "YQ==", "ContentType": "text/plain"}, "SourceLanguageCode": "en", "TargetLanguageCode": "fr"}),
    ("ListLanguages", {"DisplayLanguageCode": "zh-TW", "MaxResults": 2, "NextToken": "1"}),
)  # fmt: skip
PATHS = (
    "/languages", "/models", "/glossaries", "/glossaries/a", "/health/ready", "/metrics", "/", "/docs", "/openapi.json",
    "/playground/main.js", "/libretranslate/languages", "/v2/models/tiny-en-fr", "/v2/languages?type=target", "/v2/usage",
    "/v2/glossaries/a/entries", "/v3/glossaries", "/v1/models/tiny-en-fr", "/models/tiny-en-fr/info", "/translate/document/a",
    "/lingva/api/v1/en/fr/the%20dog%2F%0Aa", "/google/language/translate/v2?q=a&target=fr&key=b", "/mtran/google/translate_a/single?q=a&tl=fr&dj=1",
    "/azure/languages?api-version=3.0&scope=translation", "/v3/projects/p/glossaries/a",
    "/memories", "/memories/a/segments?after=1&text=a&reviewed=true", "/memories/a/file",
)  # fmt: skip
HEADERS = (
    "Accept: text/event-stream", "Accept-Encoding: gzip;q=0.5, *;q=0", "Accept-Language: fr;q=0.9, *", "Range: bytes=0-9",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Forwarded-For: 10.0.0.1, ::1", "X-Request-ID: a",
    "Expect: 100-continue", "Transfer-Encoding: chunked", "Content-Encoding: gzip", "Connection: close", "Upgrade: h2c",
    "Authorization: DeepL-Auth-Key a", "Origin: https://a.b", "If-None-Match: *", "Content-Type: application/x-www-form-urlencoded",
    "Inference-Header-Content-Length: 10", "Accept: application/problem+json;q=0.1", "Cookie: a=b", "Ocp-Apim-Subscription-Key: a", "Authorization: AWS4-HMAC-SHA256 Credential=a/20261129/b", "Content-Type: text/plain; charset=utf-16",
)  # fmt: skip


def _seeds() -> list[bytes]:
    _service()  # before memory is limited
    form = b"text=the+dog&target_lang=FR&text=a%20cat"
    chunked = b'5\r\n{"tex\r\n9;a=b\r\nt": "dog"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n'
    zipped = gzip.compress(json.dumps({"inputs": [INPUT]}).encode(), mtime=0)
    return [
        *(post(path, body) for path, body in BODIES),
        *(post("/aws", body, f"{TO_AMAZON}{name}") for name, body in AMAZON),
        *(request("GET", path) for path in PATHS),
        *(post(*BODIES[0], header) for header in HEADERS),
        *(request("GET", "/", b"", header) for header in HEADERS),
        post("/translate", BODIES[1][1], "Accept: text/event-stream") + request("GET", "/models"),
        request("POST", "/v2/translate", form, "Content-Type: application/x-www-form-urlencoded"),
        request("POST", "/translate", b"", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunked,
        request("POST", "/v2/models/tiny-en-fr/infer", zipped, "Content-Encoding: gzip"),
        tensors(b"the dog", "é".encode()),
        multipart("/translate/document", EN_FR, "a.txt", b"the dog"),
        multipart("/libretranslate/translate_file", EN_FR, "a.html", b"<p>the dog</p>"),
        multipart("/v2/document", {"target_lang": "FR", "source_lang": "EN"}, "a.csv", b"a,b\n"),
        multipart("/glossaries/file", {"name": "a", **EN_FR}, "a.tsv", b"dog\tchien\n"),
        multipart("/memories/file", {"name": "a", **EN_FR}, "a.tsv", b"the dog\tle chien\n"),
        multipart("/memories/file", {"memory_id": "a"}, "a.tmx", b"<tmx><body/></tmx>"),
        request("DELETE", "/memories/a/segments?source=the+dog"),
        request("PATCH", "/glossaries/a", b'{"name": "b"}', "Content-Type: application/json"),
        request("PUT", "/glossaries/a/dictionaries", json.dumps(DICTIONARY).encode(), "Content-Type: application/json"),
        request("DELETE", "/v3/glossaries/a/dictionaries?source_lang=en&target_lang=fr"),
        post(*BODIES[0]) + request("GET", "/models") + b"\0",
        post(*BODIES[0], "Accept: text/event-stream") + request("GET", "/", b"", "Host : a"),
        request("GET", "/models") + request("POST", "/translate", b"", "Transfer-Encoding: chunked") + b"1\r\nab",
    ]


VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, 2**64, 1e308, 1e-9, 0.5, "", " ", "a", "en", "fr", "\ud800", "\x00", "\u200b", "<b>", "[",
    [], {}, [[]], [""], {"a": 1}, ["the dog"] * 40, "the dog " * 100, "犬" * 50, "1", "(", "(?i)(a*)*b", "\\", "{n}", "tiny-en-fr",
)  # fmt: skip


def _mutate(data: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    head, separator, body = data.partition(b"\r\n\r\n")
    change = random.random()
    if not separator or change < 0.1:
        return mutate_bytes(data)
    if change < 0.3:
        head = mutate_lines(head, random, mutate_bytes)
    elif change < 0.4:
        head += b"\r\n" + random.choice(HEADERS).encode()
    else:
        body = _mutate_body(body, random, mutate_bytes)
    if random.random() < 0.9:
        head = LENGTH.sub(b"%d" % len(body), head)
    return head + separator + body


def _mutate_body(body: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return mutate_lines(body, random, mutate_bytes)
    if random.random() < 0.15:
        return mutate_bytes(body)
    return json.dumps(_mutate_value(value, random, mutate_bytes)).encode()


def _mutate_value(value: Any, random: Random, mutate_bytes: MutateBytes) -> Any:
    """Change a value somewhere within a value of JSON."""
    if isinstance(value, dict | list) and value and random.random() < 0.85:
        key = random.choice([*value] if isinstance(value, dict) else range(len(value)))
        changed = value.copy()
        if random.random() < 0.1:
            del changed[key]
        else:
            changed[key] = _mutate_value(value[key], random, mutate_bytes)
        return changed
    if isinstance(value, str) and random.random() < 0.6:
        return mutate_bytes(value.encode(errors="replace")).decode(errors="replace")
    return random.choice(VALUES)


def _texts(piece: str, fields: dict[str, Any] | None = None, path: str = "/translate") -> Any:
    def grow(size: int) -> bytes:
        return post(path, {"text": piece * min(size // len(piece), LIMIT // len(piece)), **EN_FR, **(fields or {})})

    return grow


def _items(path: str, before: str, item: str, after: str) -> Any:
    """Return bodies with a list or an object of wrong items."""
    grow = repeated(before, item, after)
    return lambda size: request(
        "POST", path, grow(min(size, LIMITS["max_body_bytes"] - 1_000)), "Content-Type: application/json"
    )


LIMIT = 5_000
GROWN = {
    "fields": lambda size: post("/translate", {f"a{i}": 1 for i in range(size // 10)}),
    "nested": lambda size: request("POST", "/translate", b'{"text":' * (size // 8), "Content-Type: application/json"),
    "lists": lambda size: request("POST", "/translate", b"[" * size, "Content-Type: application/json"),
    "header": lambda size: request("GET", "/", b"", "A: " + "b" * size),
    "headers": lambda size: request("GET", "/", b"", *(f"A{i}: b" for i in range(size // 10))),
    "path": lambda size: request("GET", "/" + "a/" * (size // 2)),
    "query": lambda size: request("GET", "/v2/languages?" + "a=b&" * (size // 4)),
    "accepted encodings": lambda size: request("GET", "/models", b"", "Accept-Encoding: " + "gzip;q=0, " * (size // 10)),
    "forwarded for": lambda size: request("GET", "/models", b"", "X-Forwarded-For: " + "10.0.0.1, " * (size // 10)),
    "form": lambda size: request("POST", "/v2/translate", b"text=a&" * (size // 7), "Content-Type: application/x-www-form-urlencoded"),
    "parts": lambda size: request("POST", "/v2/document", b"--b\r\n\r\n" * (size // 7), "Content-Type: multipart/form-data; boundary=b"),
    "wrong texts": _items("/translate", '{"text": [1', ",1", "]}"),
    "wrong texts of LibreTranslate": _items("/libretranslate/translate", '{"q": [1', ",1", "]}"),
    "wrong texts of DeepL": _items("/v2/translate", '{"target_lang": "fr", "text": [1', ",1", "]}"),
    "wrong tensors": _items("/v2/models/tiny-en-fr/infer", '{"inputs": [1', ",1", "]}"),
    "wrong elements": _items("/v2/models/tiny-en-fr/infer", '{"inputs": [{"name": "text_input", "shape": [1], "datatype": "BYTES", "data": [1', ",1", "]}]}"),
    "wrong outputs": _items("/v2/models/tiny-en-fr/infer", '{"outputs": [1', ",1", "]}"),
    "wrong documents": _items("/v1/rerank", '{"query": "a", "documents": [1', ",1", "]}"),
    "wrong dictionaries": _items("/v3/glossaries", '{"name": "a", "dictionaries": [1', ",1", "]}"),
    "wrong entries": _items("/glossaries", '{"name": "a", "dictionaries": [{"source": "a", "target": "b", "entries": {"x": 1', ',"§": 1', "}}]}"),
    "unknown fields of DeepL": _items("/v2/translate", '{"x": 1', ',"§": 1', "}"),
    "a long part": lambda size: multipart("/v2/document", {"target_lang": "a" * size}, "a.txt", b"a"),
    "headers of a part": lambda size: request("POST", "/v2/document", b"--b\r\n" + b"A: b\r\n" * (size // 6) + b"\r\n\r\n--b--", "Content-Type: multipart/form-data; boundary=b"),
    "a boundary": lambda size: request("POST", "/v2/document", b"-" * size, "Content-Type: multipart/form-data; boundary=" + "-" * min(size, 9_000)),
    "half boundaries": lambda size: request("POST", "/v2/document", b"--b\r\n\r\n" + b"\r\n--" * (size // 4), "Content-Type: multipart/form-data; boundary=b"),
    "a charset": lambda size: multipart("/v2/document", {"target_lang": "b-" + "a" * min(size, 90_000)}, "a.txt", b"a").replace(b"boundary=b", b"boundary=b; charset=punycode"),
    "chunks": lambda size: request("POST", "/translate", b"", "Transfer-Encoding: chunked") + b"1\r\n{\r\n" * (size // 6),
    "requests": lambda size: request("GET", "/health/live") * (size // 50),
    "words of the pattern": _texts("a", {"keep": ["(a*)*b"]}),
    **{f"text of {piece!r}": _texts(piece) for piece in ("a", "a ", "{a} ", "<", "**", "a.\n", "犬", "1 ", "'", "é", "\u200d", "!?", "- ", "a@", "\t")},
}  # fmt: skip

TARGET = Target(
    read=read,
    seeds=_seeds,
    allowed=(),
    mutate=_mutate,
    words=[
        b"\r\n", b"\r\n\r\n", b"HTTP/1.0", b"HTTP/2.0", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n",
        b"%00", b"%2e%2e/", b"?", b"#", b"\x00", b"\xff", b"OPTIONS", b"HEAD", b"PRI * HTTP/2.0", b"\\ud800", b"1e999", b"NaN",
        b'"text"', b'"format": "markdown"', b"Content-Disposition: form-data; name=", b"filename*=utf-8''a", b"--b--", b"; charset=utf-7",
        *(header.encode() for header in HEADERS),
    ],
    grown=GROWN,
)  # fmt: skip
