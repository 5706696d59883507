"""POST /embed: what the tiny models say in numpy is what a client gets, whoever asks at the same time."""

import asyncio
import base64
import re
import shutil
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from service.base.artifact import Artifact, read_artifact, sum_of
from service.base.errors import (
    DeadlinePassed,
    Draining,
    EmptyText,
    InferenceFailed,
    InvalidFields,
    LimitExceeded,
    ModelRequired,
    NotReady,
    RequestError,
    StartRefused,
    UnknownModel,
    UnsupportedOption,
)
from service.passes import pooling as pooling_module
from service.runner.one_pass import EmbeddingRunner
from service.runner.provider import Provider
from service.runner.weights import load_session
from service.text.tokenization import Tokenizer
from tests.service.conftest import Client, Serve, post, problem
from tests.service.tiny_artifacts import MAX_SOURCE_TOKENS, WORDS, E, TinyTranslator
from tests.service.tiny_classifier import WINDOW, TinyClassifier
from tests.waiting import until

pytestmark = pytest.mark.anyio

Array = NDArray[Any]

TRANSLATOR, CLASSIFIER = "tiny-en-fr", "tiny-sentiment"
TEXT = "the old man sees a red horse on the beach."


@pytest.fixture(scope="session")
def tokenizer(translator_artifact: Artifact) -> Tokenizer:
    return Tokenizer(translator_artifact.path("tokenizer.json"))


@pytest.fixture(scope="session")
def classifier_tokenizer(artifacts: Any) -> Tokenizer:
    return Tokenizer(artifacts / CLASSIFIER / "tokenizer.json")


embed = partial(post, path="/embed")


def unit(vectors: Array) -> Array:
    scaled: Array = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def random_texts(n: int, longest: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(n)]


async def test_an_embedding_is_the_mean_of_the_encoders_states(
    client: Client, tokenizer: Tokenizer, tiny_translator: TinyTranslator
) -> None:
    texts = ["the dog runs", "a cat", TEXT]
    body = await embed(client, text=texts, source="en")
    raw = await embed(client, text=texts, source="en", normalize=False)
    encoded = tokenizer.encode(texts)
    expected = np.stack([tiny_translator.states(ids).mean(axis=0) for ids in encoded])
    np.testing.assert_allclose([embedding["embedding"] for embedding in raw["embeddings"]], expected, atol=1e-5)
    np.testing.assert_allclose([embedding["embedding"] for embedding in body["embeddings"]], unit(expected), atol=1e-5)
    assert (body["model"], body["dimensions"]) == (TRANSLATOR, E)
    assert body["usage"] == {"tokens": sum(map(len, encoded))}
    assert body["embeddings"][0].keys() == {"embedding"}


async def test_every_token_has_a_vector_and_covers_its_part_of_the_text(
    client: Client, tokenizer: Tokenizer, tiny_translator: TinyTranslator
) -> None:
    text = "  the dog runs.\n\na cat sees the man."
    body = await embed(client, text=text, model=TRANSLATOR, pooling="none", normalize=False)
    (found,) = body["embeddings"]
    sentences = tokenizer.encode(["the dog runs.", "a cat sees the man."])
    expected = np.concatenate([tiny_translator.states(ids) for ids in sentences])
    np.testing.assert_allclose(found["embeddings"], expected, atol=1e-5)
    covered = [text[slice(*token["span"])] for token in found["tokens"]]
    assert covered == ["the", "dog", "runs", ".", "", "a", "cat", "sees", "the", "man", ".", ""]
    assert [token["token"] for token in found["tokens"]].count("</s>") == 2
    assert body["usage"] == {"tokens": len(covered)}


async def test_spaces_and_hidden_characters_change_no_embedding_of_a_translator(client: Client) -> None:
    text = "the \u00a0 d\u200dog    runs. \u3000a  cat"
    plain, strange = (await embed(client, text=["the dog runs. a cat", text], model=TRANSLATOR))["embeddings"]
    assert strange == plain
    (found,) = (await embed(client, text=text, model=TRANSLATOR, pooling="none"))["embeddings"]
    covered = [text[slice(*token["span"])] for token in found["tokens"]]
    assert covered == ["the", "d\u200dog", "runs", ".", "", "a", "cat", ""]


async def test_each_vector_of_a_token_has_length_one_unless_told_otherwise(client: Client) -> None:
    (found,) = (await embed(client, text=TEXT, source="en", pooling="none"))["embeddings"]
    (raw,) = (await embed(client, text=TEXT, source="en", pooling="none", normalize=False))["embeddings"]
    np.testing.assert_allclose(np.linalg.norm(found["embeddings"], axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found["embeddings"], unit(np.array(raw["embeddings"])), atol=1e-6)


@pytest.mark.parametrize("n_words", [1, WINDOW, WINDOW + 1, 30])
async def test_a_classifier_reads_windows_and_the_mean_is_over_all_their_tokens(
    client: Client, classifier_tokenizer: Tokenizer, tiny_classifier: TinyClassifier, n_words: int
) -> None:
    text = " ".join(np.random.default_rng(n_words).choice(WORDS, n_words))
    (ids,) = classifier_tokenizer.encode([text])
    bounds = np.linspace(0, len(ids), -(-len(ids) // WINDOW) + 1).astype(int)
    states = [tiny_classifier.states(ids[a:b]) for a, b in pairwise(bounds)]
    (mean,) = (await embed(client, text=text, model=CLASSIFIER, normalize=False))["embeddings"]
    (each,) = (await embed(client, text=text, model=CLASSIFIER, normalize=False, pooling="none"))["embeddings"]
    np.testing.assert_allclose(each["embeddings"], np.concatenate(states), atol=1e-5)
    np.testing.assert_allclose(mean["embedding"], np.concatenate(states).mean(axis=0), atol=1e-5)
    assert len(each["tokens"]) == n_words


async def test_a_sentence_over_the_models_limit_is_read_in_pieces_and_nothing_is_lost(client: Client) -> None:
    sentence = " ".join(["the dog runs, a cat sees the old man"] * 12)  # 120 tokens, no end in sight
    body = await embed(client, text=sentence, model=TRANSLATOR, pooling="none")
    (found,) = body["embeddings"]
    words = [sentence[slice(*token["span"])] for token in found["tokens"]]
    assert "".join(words) == sentence.replace(" ", "")
    assert words.count("") > len(words) // MAX_SOURCE_TOKENS, "each piece ends in </s>"


async def test_a_text_of_marks_alone_is_read_as_it_is(
    client: Client, tokenizer: Tokenizer, tiny_translator: TinyTranslator
) -> None:
    body = await embed(client, text=["the dog", "---"], source="en", normalize=False)
    expected = [tiny_translator.states(ids).mean(axis=0) for ids in tokenizer.encode(["the dog", "---"])]
    np.testing.assert_allclose([embedding["embedding"] for embedding in body["embeddings"]], expected, atol=1e-5)


async def test_base64_is_the_same_numbers(client: Client) -> None:
    for pooling, key, shape in (("mean", "embedding", (E,)), ("none", "embeddings", (-1, E))):
        (plain,) = (await embed(client, text=TEXT, source="en", pooling=pooling))["embeddings"]
        (coded,) = (await embed(client, text=TEXT, source="en", pooling=pooling, encoding="base64"))["embeddings"]
        decoded = np.frombuffer(base64.b64decode(coded[key]), "<f4").reshape(shape)
        np.testing.assert_allclose(decoded, plain[key], atol=1e-6)


@pytest.mark.parametrize("model", [TRANSLATOR, CLASSIFIER])
async def test_many_clients_at_once_get_the_answers_of_one_at_a_time_to_the_last_bit(serve: Serve, model: str) -> None:
    texts = random_texts(48, longest=60)
    bodies: list[dict[str, Any]] = [
        {"text": text, "model": model, "pooling": ("mean", "none")[i % 2], "encoding": "base64"}
        for i, text in enumerate(texts)
    ]
    async with serve() as client:
        alone = [await embed(client, **body) for body in bodies]
        together = await asyncio.gather(*[embed(client, **body) for body in bodies])
        in_one = await embed(client, text=texts, model=model, encoding="base64")
    assert together == alone
    means = [body["embeddings"][0] for body in alone[::2]]
    assert in_one["embeddings"][::2] == means


async def test_models_that_could_serve_are_named(client: Client) -> None:

    async def detail(error: type[RequestError], **body: Any) -> str:
        found: str = problem(await client.post("/embed", json={"text": "a dog", **body}), error)["detail"]
        return found

    both = "en (tiny-en-fr), tiny-sentiment"
    assert (await detail(ModelRequired)).endswith(both)
    assert re.match(rf"`source` .* xx; .*{re.escape(both)}$", await detail(InvalidFields, source="xx"))
    of_translator = await detail(InvalidFields, source="fr", model=TRANSLATOR)
    assert re.match(r"`source` .* fr; .* en \(tiny-en-fr\)$", of_translator)
    assert re.search("'big'.* tiny-en-fr, tiny-sentiment$", await detail(UnknownModel, model="big"))


@pytest.mark.parametrize(
    ("body", "error", "part"),
    [
        ({"text": ""}, InvalidFields, "`text` .*empty"),
        ({"text": ["a", ""]}, InvalidFields, "`text` .*empty.* 1"),
        ({"text": 5}, InvalidFields, "`text` .*list of strings"),
        ({"text": "a", "pooling": "max"}, InvalidFields, "`pooling` .*'mean' or 'none'"),
        ({"text": "a", "encoding": "hex"}, InvalidFields, "`encoding` .*'json' or 'base64'"),
        ({"text": "a", "normalize": 1}, InvalidFields, "`normalize` .*boolean"),
        ({"text": "a", "attention": True}, UnsupportedOption, "`attention` of tiny-sentiment .*/classify"),
        ({"text": "a", "prompt": "query"}, InvalidFields, "`prompt` .*tiny-sentiment, not 'query'; available: none"),
        ({"text": "a", "timeout_s": 1000}, InvalidFields, "`timeout_s` .* 300 s, not 1000 s"),
        ({"text": ["a", " \n"]}, EmptyText, "Text 1 of 2 .*embed"),
    ],
)
async def test_unacceptable_options_are_named(client: Client, body: Any, error: type[RequestError], part: str) -> None:
    detail = problem(await client.post("/embed", json={"model": CLASSIFIER} | body), error)["detail"]
    assert re.match(part, detail), detail


async def test_too_many_numbers_are_refused_before_anything_is_read(serve: Serve) -> None:
    async with serve(max_answer_numbers=3 * E) as client:
        await embed(client, text=["a dog"] * 3, source="en")
        response = await client.post("/embed", json={"text": "a dog runs", "source": "en", "pooling": "none"})
        many = problem(await client.post("/embed", json={"text": ["a"] * 4, "source": "en"}), LimitExceeded)
    detail = problem(response, LimitExceeded)["detail"]
    assert re.match(f"4 .* {E} dimensions .* {4 * E} .* {3 * E}: .*`pooling`", detail), detail
    assert many["detail"].endswith("send fewer texts")
    assert "encode;dur=0.00" in response.headers["server-timing"]


async def test_the_work_is_timed_counted_and_described(client: Client) -> None:
    response = await client.post("/embed", json={"text": "the dog", "source": "en"})
    metrics = (await client.get("/metrics")).text.splitlines()
    document = (await client.get("/openapi.json")).json()
    parts = dict(part.split(";dur=") for part in response.headers["server-timing"].split(", "))
    assert float(parts["encode"]) > 0
    assert 'attend_requests_total{dialect="native",route="/embed",status="200"} 1.0' in metrics
    assert 'attend_tokens_total{side="source",task="embedding"} 3.0' in metrics
    assert 'attend_waiting{task="embedding"} 0.0' in metrics
    schemas = document["components"]["schemas"]
    assert schemas["EmbedRequest"]["properties"].keys() == {
        "text", "model", "timeout_s", "source", "prompt", "pooling", "normalize", "encoding", "attention",
        "dimensions",
    }  # fmt: skip
    responses = document["paths"]["/embed"]["post"]["responses"]
    assert sorted(responses) == ["200", "400", "403", "404", "408", "413", "415", "422", "500", "503", "504"]


def test_an_encoder_that_does_not_give_its_states_refuses_the_start(tmp_path: Path, artifacts: Path) -> None:
    directory = shutil.copytree(artifacts / CLASSIFIER, tmp_path / CLASSIFIER)
    graph = onnx.load(directory / "cpu" / "classifier.onnx", load_external_data=False)
    kept = [output for output in graph.graph.output if output.name != "last_hidden_state"]
    del graph.graph.output[:]
    graph.graph.output.extend(kept)
    onnx.save(graph, directory / "cpu" / "classifier.onnx")
    manifest = read_artifact(artifacts / CLASSIFIER).manifest
    sums = {file: sum_of(directory / file) for file in manifest.files}
    artifact = Artifact(directory, manifest.model_copy(update={"files": sums}))
    with pytest.raises(StartRefused, match=r"tiny-sentiment: .* no output last_hidden_state"):
        EmbeddingRunner(artifact, load_session(artifact, Provider("cpu", 1), "classifier.onnx"))


@pytest.mark.parametrize("model", ["tiny-en-fr", CLASSIFIER])
def test_an_encoder_with_states_of_another_width_refuses_the_start(artifacts: Path, model: str) -> None:
    read = read_artifact(artifacts / model)
    graph = "encoder.onnx" if read.manifest.task == "translation" else "classifier.onnx"
    session = load_session(read, Provider("cpu", 1), graph)
    EmbeddingRunner(read, session)
    dimensions = read.manifest.dimensions.model_copy(update={"d_model": 25})
    artifact = Artifact(read.directory, read.manifest.model_copy(update={"dimensions": dimensions}))
    with pytest.raises(StartRefused, match=r"last_hidden_state .* 24; .* 25"):
        EmbeddingRunner(artifact, session)


async def test_the_next_request_after_a_failed_pass_succeeds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("the secret cause")

    async def is_ready() -> bool:
        return (await client.get("/health/ready")).status_code == 200

    with monkeypatch.context() as patch:
        patch.setattr(pooling_module, "pool_states", fail)
        response = await client.post("/embed", json={"text": "a", "model": CLASSIFIER})
        detail = problem(response, InferenceFailed)["detail"]
        assert f"{CLASSIFIER}/embedding failed (MemoryError)" in detail
        assert "secret" not in detail
        not_ready = problem(await client.get("/health/ready"), NotReady)
        assert f"{CLASSIFIER}: the last forward pass failed (MemoryError)" in not_ready["detail"]
    await until(is_ready)
    await embed(client, text="a", model=CLASSIFIER)


async def test_a_deadline_that_passed_is_a_gateway_timeout_and_draining_is_told(client: Client) -> None:
    body = {"text": "a", "model": CLASSIFIER}
    problem(await client.post("/embed", json=body | {"timeout_s": 1e-9}), DeadlinePassed)
    client._transport.app.state.serving.drain()  # type: ignore[attr-defined]
    problem(await client.post("/embed", json=body), Draining)
