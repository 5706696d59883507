import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers

from service.errors import ArtifactRefused, DeadlinePassed
from service.text.tokenization import SHORT, Tokenizer, beside_each
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS


@pytest.fixture
def tokenizer(artifacts: Path) -> Tokenizer:
    return Tokenizer(artifacts / "tiny-en-fr" / "tokenizer.json")


def test_a_source_ends_with_the_end_of_sequence_and_decoding_drops_it(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode(["the dog runs", "a cat"])
    assert [ids[-1] for ids in encoded] == [EOS, EOS]
    assert tokenizer.decode(encoded) == ["the dog runs", "a cat"]


def test_any_white_space_is_read_as_a_space(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(["a\u00a0b\u202fc\td\ne"]) == tokenizer.encode(["a b c d e"])


def test_a_special_token_in_a_users_text_is_text(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode(["the </s> dog"])
    assert ids.count(EOS) == 1


def test_a_tokenizer_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "été ▁": 1}, "[UNK]")).save(str(path))
    with pytest.raises(ArtifactRefused, match=r"tokenizer\.json: the token 'été ▁' is none of a byte-level tokenizer"):
        Tokenizer(path)


def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ArtifactRefused, match=r"tokenizer\.json: not a tokenizer"):
        Tokenizer(path)


class Slow:
    """Work that goes on when the test lets it."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.read: list[str] = []

    def __call__(self, text: str) -> int:
        self.read.append(text[0])
        self.begun.set()
        assert self.gate.wait(PATIENCE_S), "the test forgot to open the gate"
        return len(text)


LONG = ["a" * SHORT, "b" * SHORT]


@pytest.mark.anyio
async def test_each_of_several_texts_is_worked_on_in_order() -> None:
    assert await beside_each(["abc", "d"], len, 4, PATIENCE_S) == [3, 1]
    assert await beside_each(LONG, len, 2 * SHORT, PATIENCE_S) == [SHORT, SHORT]


@pytest.mark.anyio
@pytest.mark.parametrize("reason", ["deadline", "client gone"])
async def test_texts_that_nobody_waits_for_are_left(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, threads = Slow(), ThreadPoolExecutor()
    monkeypatch.setattr("service.text.tokenization._THREADS", threads)
    timeout_s = 0.001 if reason == "deadline" else PATIENCE_S
    waiting = asyncio.ensure_future(beside_each(LONG, slow, 2 * SHORT, timeout_s))
    if reason == "deadline":
        with pytest.raises(DeadlinePassed, match="while texts were tokenized or put together"):
            await waiting
    else:
        assert await asyncio.to_thread(slow.begun.wait, PATIENCE_S)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    slow.gate.set()
    threads.shutdown()  # waits for the thread
    assert slow.read in (["a"], [])
