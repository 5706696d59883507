"""tritonclient, sync and aio, calls a real server. Requests that it never sends are written here."""

import asyncio
import gc
import gzip
import json
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from tests.service.dialects.conftest import Listen
from tests.service.tiny_classifier import LABELS

TEXTS = ["the dog runs", "a cat sees . the man runs", "où ?"]
MODEL = "/v2/models/tiny-en-fr"
LENGTH = "Inference-Header-Content-Length"

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def http_client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address) as client:
        yield client


@pytest.fixture(params=["sync", "aio"])
def call(request: pytest.FixtureRequest, address: str) -> Iterator[Call]:
    """call(method, ...) calls a method of tritonclient."""
    host = address.removeprefix("http://")
    if request.param == "sync":
        with tritonclient.http.InferenceServerClient(host) as client:
            yield lambda method, *given, **named: getattr(client, method)(*given, **named)
        return

    async def asked(method: str, *given: Any, **named: Any) -> Any:
        async with tritonclient.http.aio.InferenceServerClient(host) as client:
            return await getattr(client, method)(*given, **named)

    def ask(method: str, *given: Any, **named: Any) -> Any:
        with warnings.catch_warnings():
            # Where the client asks for readiness it leaves the answer unread; aiohttp warns if the end comes late.
            warnings.simplefilter("ignore", ResourceWarning)
            answer = asyncio.run(asked(method, *given, **named))
            if method.startswith("is_"):
                gc.collect()
        return answer

    yield ask


def text_input(texts: Any, binary_data: bool = True, name: str = "text_input") -> tritonclient.http.InferInput:
    array = np.array(texts, object)
    return tritonclient.http.InferInput(name, array.shape, "BYTES").set_data_from_numpy(array, binary_data)


def wanted(name: str, binary_data: bool) -> tritonclient.http.InferRequestedOutput:
    return tritonclient.http.InferRequestedOutput(name, binary_data)


def native(client: httpx.Client, path: str, **fields: Any) -> Any:
    return client.post(path, json={"text": TEXTS} | fields).raise_for_status().json()


def test_the_server_and_its_models_are_described(call: Call) -> None:
    assert call("is_server_live")
    assert call("is_server_ready")
    metadata = call("get_server_metadata")
    assert metadata["name"] == "attend"
    assert {"binary_tensor_data", "model_repository"} <= set(metadata["extensions"])
    assert call("get_model_repository_index") == [
        {"name": name, "version": "1", "state": "READY", "reason": ""}
        for name in ("tiny-en-fr", "org/tiny-sentiment", "tiny-vectors")
    ]
    for version in ("", "1"):
        assert call("is_model_ready", "tiny-en-fr", version)
        assert call("get_model_metadata", "tiny-en-fr", version) == {
            "name": "tiny-en-fr",
            "versions": ["1"],
            "platform": "onnx_onnxv1",
            "inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [-1]}],
            "outputs": [
                {"name": "text_output", "datatype": "BYTES", "shape": [-1]},
                {"name": "score", "datatype": "FP32", "shape": [-1]},
            ],
        }
    assert call("get_model_metadata", "org/tiny-sentiment")["outputs"] == [
        {"name": "label", "datatype": "BYTES", "shape": [-1]},
        {"name": "score", "datatype": "FP32", "shape": [-1]},
        {"name": "scores", "datatype": "FP32", "shape": [-1, len(LABELS)]},
    ]


@pytest.mark.parametrize("binary_input", [True, False])
@pytest.mark.parametrize("binary_output", [True, False, None])
def test_texts_are_translated_in_json_and_in_binary(
    call: Call, http_client: httpx.Client, binary_input: bool, binary_output: bool | None
) -> None:
    outputs = None
    if binary_output is not None:
        outputs = [wanted("score", binary_output), wanted("text_output", binary_output)]
    result = call("infer", "tiny-en-fr", [text_input(TEXTS, binary_input)], outputs=outputs, request_id="id 1")
    expected = native(http_client, "/translate")["translations"]
    found = [text.decode() if isinstance(text, bytes) else text for text in result.as_numpy("text_output")]
    assert found == [one["text"] for one in expected]
    np.testing.assert_allclose(result.as_numpy("score"), [one["score"] for one in expected], atol=1e-5)
    response = result.get_response()
    assert (response["model_name"], response["model_version"], response["id"]) == ("tiny-en-fr", "1", "id 1")
    for output in response["outputs"]:
        assert ("data" in output) == (binary_output is False)
        assert ("parameters" in output) == (binary_output is not False)


def test_one_output_may_be_binary_and_another_not(call: Call) -> None:
    outputs = [wanted("text_output", binary_data=False), wanted("score", binary_data=True)]
    result = call("infer", "tiny-en-fr", [text_input(TEXTS)], outputs=outputs, model_version="1")
    both = call("infer", "tiny-en-fr", [text_input(TEXTS)])
    assert [*result.as_numpy("text_output")] == [text.decode() for text in both.as_numpy("text_output")]
    assert [*result.as_numpy("score")] == [*both.as_numpy("score")]
    assert "id" not in result.get_response()


def test_texts_are_labelled(call: Call, http_client: httpx.Client) -> None:
    result = call("infer", "org/tiny-sentiment", [text_input([[text] for text in TEXTS])])
    expected = native(http_client, "/classify")["predictions"]
    assert result.as_numpy("label").tolist() == [[one["label"].encode()] for one in expected]
    np.testing.assert_allclose(result.as_numpy("score"), [[one["score"]] for one in expected], atol=1e-6)
    scores = [[[one["scores"][label] for label in LABELS]] for one in expected]
    np.testing.assert_allclose(result.as_numpy("scores"), scores, atol=1e-6)


def test_texts_are_embedded_by_models_made_for_that(call: Call, http_client: httpx.Client) -> None:
    assert call("get_model_metadata", "tiny-vectors")["outputs"] == [
        {"name": "embedding", "datatype": "FP32", "shape": [-1, 24]}
    ]
    texts = ["the dog runs", "a cat"]
    result = call("infer", "tiny-vectors", [text_input(texts)], parameters={"prompt": "query"})
    expected = native(http_client, "/embed", text=texts, model="tiny-vectors", prompt="query")["embeddings"]
    np.testing.assert_allclose(result.as_numpy("embedding"), [one["embedding"] for one in expected], atol=1e-6)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_bodies_may_be_compressed_on_both_ways(call: Call, algorithm: str) -> None:
    texts = ["the dog runs"] * 200  # an answer of more than 4 KB
    plain = call("infer", "tiny-en-fr", [text_input(texts)])
    compressed = call(
        "infer",
        "tiny-en-fr",
        [text_input(texts)],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert [*compressed.as_numpy("text_output")] == [*plain.as_numpy("text_output")]


def test_parameters_are_options_of_the_native_route(call: Call, http_client: httpx.Client) -> None:
    parameters = {"beam_size": 1, "max_target_tokens": 3, "split_sentences": False}
    result = call("infer", "tiny-en-fr", [text_input(TEXTS)], parameters=parameters, priority=1, timeout=10_000_000)
    expected = native(http_client, "/translate", **parameters)["translations"]
    assert [text.decode() for text in result.as_numpy("text_output")] == [one["text"] for one in expected]
    with pytest.raises(InferenceServerException, match="deadline") as late:
        call("infer", "tiny-en-fr", [text_input(TEXTS)], timeout=1)
    assert late.value.status() == "504"


def test_an_empty_text_keeps_its_place_and_a_null_is_no_parameter(call: Call) -> None:
    nulls = dict.fromkeys(("beam_size", "split_sentences", "keep"))
    with_empty = call("infer", "tiny-en-fr", [text_input(["", TEXTS[0], ""])], parameters=nulls)
    alone = call("infer", "tiny-en-fr", [text_input([TEXTS[0]])])
    assert [*with_empty.as_numpy("text_output")] == [b"", *alone.as_numpy("text_output"), b""]


def test_a_stored_glossary_may_be_named(call: Call, http_client: httpx.Client) -> None:
    dictionary = {"source": "en", "target": "fr", "entries": {"dog": "clebs"}}
    kept = http_client.post("/glossaries", json={"name": "Animals", "dictionaries": [dictionary]}).raise_for_status()
    parameters = {"glossary_id": next(value for key, value in kept.json().items() if key.endswith("id"))}
    result = call("infer", "tiny-en-fr", [text_input(["the dog"])], parameters=parameters)
    assert b"clebs" in result.as_numpy("text_output")[0]


@pytest.mark.parametrize(
    ("given", "says", "status"),
    [
        ({"model_name": "big"}, "'big'; available: tiny-en-fr, org/tiny-sentiment", "404"),
        ({"model_version": "2"}, "'tiny-en-fr/versions/2'", "404"),
        ({"inputs": [text_input(TEXTS, name="text")]}, "`inputs.0.name` must be 'text_input'", "400"),
        ({"inputs": [text_input(TEXTS)] * 2}, "`inputs` must have at most 1 item", "400"),
        ({"inputs": []}, "`inputs` must have at least 1 item", "400"),
        ({"outputs": [wanted("text", True)]}, "of tiny-en-fr, not text; available: text_output, score", "400"),
        ({"outputs": [tritonclient.http.InferRequestedOutput("score", class_count=2)]},
         "score has the parameter classification; available: binary_data", "400"),
        ({"parameters": {"beam": 3}}, "`parameters.beam` is not an option of tiny-en-fr; available: beam_size", "400"),
        ({"parameters": {"attention": True}}, "`parameters.attention` is not an option of tiny-en-fr", "400"),
        ({"parameters": {"beam_size": 9}}, "`parameters.beam_size` must be less than or equal to 8, not 9", "400"),
        ({"parameters": {"max_target_tokens": 10**6}}, "`parameters.max_target_tokens` must be at most 70", "400"),
        ({"parameters": {"tags": {"keep": ["b"]}}}, "`parameters.tags` needs `parameters.format` html or xml", "400"),
        ({"model_name": "tiny-vectors", "parameters": {"prompt": "x"}}, "`parameters.prompt` must be a prompt", "400"),
        ({"model_name": "tiny-vectors", "parameters": {"source": "en"}}, "not en; available: none", "400"),
        ({"parameters": {"target": "xx"}}, "tiny-en-fr does not translate from any language to xx", "400"),
        ({"timeout": -1}, "`parameters.timeout` must be a number of microseconds, not -1", "400"),
        ({"timeout": 10**400}, "`parameters.timeout` must be a number of microseconds, not 1000", "400"),
        ({"model_name": "tiny-vectors", "inputs": [text_input(["a", ""])]},
         "`text_input` must not have an empty text (number 1)", "400"),
        ({"inputs": [text_input([])]}, "`text_input` must have at least 1 item", "400"),
        ({"inputs": [text_input([b"\xff"])]}, "text_input: element 0 is not UTF-8", "400"),
        ({"inputs": [text_input(["a"] * 300)]}, "300 texts; the limit is 256", "400"),
    ],
)  # fmt: skip
def test_invalid_fields_are_refused_by_name(call: Call, given: Any, says: str, status: str) -> None:
    with pytest.raises(InferenceServerException) as refused:
        call("infer", **{"model_name": "tiny-en-fr", "inputs": [text_input(TEXTS)]} | given)
    assert says in refused.value.message()
    assert refused.value.status() == status


def test_unknown_paths_and_models_are_named(call: Call) -> None:
    assert not call("is_model_ready", "big")
    assert not call("is_model_ready", "tiny-en-fr", "2")
    for method, given, says in (
        ("load_model", ["tiny-en-fr"], "/v2/repository/models/tiny-en-fr/load"),
        ("get_log_settings", [], "/v2/logging"),
        ("get_system_shared_memory_status", [], "/v2/systemsharedmemory/status"),
        ("get_model_config", ["tiny-en-fr"], "'tiny-en-fr/config'; available: "),
        ("get_inference_statistics", [], "'stats'; available: "),
    ):
        with pytest.raises(InferenceServerException) as refused:
            call(method, *given)
        assert says in refused.value.message()
        assert refused.value.status() == "404"


def test_headers_of_an_earlier_request_are_refused(address: str) -> None:
    headers = {"Authorization": "Bearer any"}
    with tritonclient.http.InferenceServerClient(address.removeprefix("http://")) as client:
        for text in ("a", "a" * 200):  # shorter and longer than what is in the header
            client.infer("tiny-en-fr", [text_input(TEXTS)], headers=headers)
            with pytest.raises(InferenceServerException, match="of an earlier request\\? tritonclient writes") as stale:
                client.infer("tiny-en-fr", [text_input([text], False)], headers=headers)
            assert stale.value.status() == "400"


def binary(elements: bytes, head: dict[str, Any] | None = None, **changes: Any) -> tuple[bytes, dict[str, str]]:
    """Return a body with binary texts, and its headers."""
    tensor = {"name": "text_input", "shape": [1], "datatype": "BYTES",
              "parameters": {"binary_data_size": len(elements)}} | changes  # fmt: skip
    begin = json.dumps({"inputs": [tensor]} | (head or {})).encode()
    return begin + elements, {LENGTH: str(len(begin))}


def element(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text


def test_an_answer_is_byte_for_byte_what_the_extension_says(http_client: httpx.Client) -> None:
    body, headers = binary(element(b"the dog"), {"parameters": {"binary_data_output": True}, "id": "é"})
    answer = http_client.post(f"{MODEL}/infer", content=body, headers=headers)
    end = int(answer.headers[LENGTH])
    [translation] = native(http_client, "/translate", text="the dog")["translations"]
    text = element(translation["text"].encode())
    assert json.loads(answer.content[:end]) == {
        "model_name": "tiny-en-fr",
        "model_version": "1",
        "id": "é",
        "outputs": [
            {"name": "text_output", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(text)}},
            {"name": "score", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}},
        ],
    }
    assert answer.content[end:-4] == text
    assert struct.unpack("<f", answer.content[-4:]) == pytest.approx((translation["score"],), abs=1e-6)
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("data", [["a", "b", "c", "d"], [["a", "b"], ["c", "d"]], [[["a"], ["b"]], [["c", "d"]]]])
def test_json_may_be_flat_or_nested_and_has_no_header(http_client: httpx.Client, data: Any) -> None:
    body = {"inputs": [{"name": "text_input", "shape": [2, 2], "datatype": "BYTES", "data": data}]}
    answer = http_client.post(f"{MODEL}/versions/1/infer", content=json.dumps(body).encode())
    assert LENGTH not in answer.headers
    assert answer.headers["content-type"] == "application/json"
    text_output, score = answer.json()["outputs"]
    assert text_output["shape"] == score["shape"] == [2, 2]
    assert text_output["data"] == [
        translation["text"]
        for translation in native(http_client, "/translate", text=["a", "b", "c", "d"])["translations"]
    ]
    assert text_output.keys() == score.keys() == {"name", "datatype", "shape", "data"}


def test_null_means_the_default(http_client: httpx.Client) -> None:
    tensor = {"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["a"]}
    nothing = {"id": None, "parameters": None, "outputs": None}
    answers = [
        http_client.post(f"{MODEL}/infer", json=body).raise_for_status().json()
        for body in ({"inputs": [tensor]}, {"inputs": [tensor | {"parameters": None}]} | nothing)
    ]
    assert answers[0] == answers[1]


def in_json(**changes: Any) -> tuple[bytes, dict[str, str]]:
    tensor = {"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["a"]} | changes
    return json.dumps({"inputs": [tensor]}).encode(), {}


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (in_json(shape=[2]), 400, "text_input: `shape` [2] means 2 elements, but there are 1"),
        (in_json(shape=[-1]), 400, "`inputs.0.shape.0` must be greater than or equal to 0, not -1"),
        (in_json(shape=[2**64]), 400, "`inputs.0.shape.0` must be less than 9223372036854775808, not"),
        (in_json(shape=[2**62] * 999), 400, "`inputs.0.shape` must have at most 16 items"),
        (in_json(datatype="FP32", data=[1.0]), 400, "`inputs.0.datatype` must be 'BYTES'"),
        (in_json(data=[1]), 400, "text_input: an element must be a string, not 1"),
        (in_json(data=None), 400, "text_input: elements must be in `data`"),
        (in_json(parameters={"binary_data_size": 5}), 400, "0 bytes follow the JSON, but `binary_data_size` of the inputs adds up to 5"),  # noqa: E501
        (in_json(parameters={"shared_memory_region": "a"}, data=None), 400, "elements must be in `data`"),
        (binary(element(b"a"), shape=[2]), 400, "`shape` [2] means 2 elements, but there are 1"),
        (binary(element(b"a"), datatype="INT32"), 400, "`inputs.0.datatype` must be 'BYTES'"),
        (binary(element(b"abc")[:-1]), 400, "text_input: element 0 should have 3 bytes, but 2 are left"),
        (binary(element(b"a") + b"\0\0"), 400, "text_input: the data end within the length of element 1"),
        (binary(b"\xff\xff\xff\xff"), 400, "element 0 should have 4294967295 bytes, but 0 are left"),
        (binary(element(b"a"), parameters={"binary_data_size": 4}), 400, "5 bytes follow the JSON, but `binary_data_size` of the inputs adds up to 4"),  # noqa: E501
        (binary(element(b"a"), parameters={"binary_data_size": 9}), 400, "5 bytes follow the JSON, but `binary_data_size` of the inputs adds up to 9"),  # noqa: E501
        (binary(element(b"a"), parameters={"binary_data_size": -1}), 400, "`binary_data_size` must be a number of bytes, not -1"),  # noqa: E501
        (binary(element(b"a"), parameters={"binary_data_size": "5"}), 400, "`binary_data_size` must be a number of bytes, not '5'"),  # noqa: E501
        (binary(element(b"a"), data=["a"]), 400, "elements must be in `data`"),
        ((b'{"id": "\\ud800", "inputs": []}', {}), 400, "2 fields are invalid; the first: `id` must"),
        ((b"{}", {LENGTH: "x"}), 400, f"{LENGTH} must be a number, not x"),
        ((b"{}", {LENGTH: "3"}), 400, f"{LENGTH} is 3, but the body has 2 bytes; is {LENGTH} that of an earlier"),
        ((b"{}", {LENGTH: "9" * 5000}), 400, "the body has 2 bytes"),
        ((b"{}", {LENGTH: "1"}), 400, "not JSON"),
        ((b"", {}), 400, "JSON object"),
        ((b"not gzip", {"Content-Encoding": "gzip"}), 400, "not gzip"),
        ((gzip.compress(in_json()[0])[:-9], {"Content-Encoding": "gzip"}), 400, "does not end where its gzip does"),
        ((gzip.compress(in_json()[0]) + b"x", {"Content-Encoding": "gzip"}), 400, "does not end where its gzip does"),
        ((zlib.compress(b" " * 2_000_000), {"Content-Encoding": "deflate"}), 413, "more than 1048576 bytes"),
        ((in_json()[0], {"Content-Encoding": "br"}), 415, "gzip or deflate, not br"),
        ((b" " * 1_048_577, {}), 413, "announces 1048577 bytes"),
    ],
)  # fmt: skip
def test_a_body_that_contradicts_itself_is_refused_with_the_numbers(
    http_client: httpx.Client, sent: tuple[bytes, dict[str, str]], status: int, says: str
) -> None:
    body, headers = sent
    answer = http_client.post(f"{MODEL}/infer", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert says in answer.json()["error"]
    assert answer.json().keys() == {"error"}


def test_generate_takes_one_text(http_client: httpx.Client) -> None:
    body = {"text_input": TEXTS[0], "parameters": {"beam_size": 1}}
    [expected] = native(http_client, "/translate", text=TEXTS[0], beam_size=1)["translations"]
    answer = http_client.post(f"{MODEL}/generate", json=body).raise_for_status().json()
    assert answer.pop("score") == pytest.approx(expected["score"], abs=1e-6)
    assert answer == {"model_name": "tiny-en-fr", "model_version": "1", "text_output": expected["text"]}
    labels = http_client.post(
        "/v2/models/org/tiny-sentiment/versions/1/generate", json={"text_input": "the dog"}
    ).json()
    assert labels["scores"][LABELS.index(labels["label"])] == labels["score"]
    assert http_client.post(f"{MODEL}/generate", json=body | {"parameters": None}).status_code == 200
    refused = http_client.post(f"{MODEL}/generate", json={"text_input": TEXTS})
    assert (refused.status_code, refused.json()) == (400, {"error": "`text_input` must be a valid string"})


def test_an_unknown_path_is_answered_for_deepls_clients_too(http_client: httpx.Client) -> None:
    says = "Nothing is at /v2/nowhere"
    answer = http_client.get("/v2/nowhere")
    assert (answer.status_code, answer.json()) == (404, {"error": says, "message": says})
    for path in (f"{MODEL}/generate_stream", f"{MODEL}/trace/setting", "/v2/models/big/config"):
        answer = http_client.post(path, json={})
        assert (answer.status_code, answer.json()["error"]) == (404, f"Nothing is at {path}")
    wrong_method = http_client.post(MODEL, json={})
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "GET")
    wrong_method = http_client.put(f"{MODEL}/infer")
    assert (wrong_method.status_code, wrong_method.json().keys()) == (405, {"error"})
    assert "PUT" in wrong_method.json()["error"]


def test_every_route_but_health_needs_a_key(listen: Listen) -> None:
    host = listen(api_keys="one").removeprefix("http://")
    with tritonclient.http.InferenceServerClient(host) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        for headers, status in (({}, "401"), ({"Authorization": "Bearer two"}, "403")):
            for ask in (
                lambda headers: client.infer("tiny-en-fr", [text_input(TEXTS)], headers=headers),
                lambda headers: client.get_server_metadata(headers=headers),
                lambda headers: client.get_model_repository_index(headers=headers),
            ):
                with pytest.raises(InferenceServerException, match="key") as refused:
                    ask(dict(headers))
                assert refused.value.status() == status
        assert not client.is_model_ready("tiny-en-fr")
        right = {"Authorization": "Bearer one"}
        assert client.is_model_ready("tiny-en-fr", headers=right)
        assert client.infer("tiny-en-fr", [text_input(TEXTS)], headers=dict(right)).as_numpy("score").shape == (3,)
