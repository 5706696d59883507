import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers
from tokenizers import normalizers

from service.base.errors import ArtifactRefused, DeadlinePassed
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, Tokenizer, run_on_each
from tests.service.fakes import PATIENCE_S
from tests.service.text.byte_level import byte_level_bpe
from tests.service.tiny_artifacts import EOS


@pytest.fixture
def tokenizer(artifacts: Path) -> Tokenizer:
    return Tokenizer(artifacts / "tiny-en-fr" / "tokenizer.json")


def test_a_source_ends_with_the_end_of_sequence_and_decoding_drops_it(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode(["the dog runs", "a cat"])
    assert [ids[-1] for ids in encoded] == [EOS, EOS]
    assert tokenizer.decode(encoded) == ["the dog runs", "a cat"]


def test_a_tokenizer_saved_with_truncation_and_padding_reads_whole_texts(tokenizer: Tokenizer, artifacts: Path) -> None:
    saved = tokenizers.Tokenizer.from_file(str(artifacts / "tiny-en-fr" / "tokenizer.json"))
    saved.enable_truncation(2)
    saved.enable_padding(length=9)
    texts = ["the dog runs", "a cat"]
    assert Tokenizer(artifacts, saved.to_str().encode()).encode(texts) == tokenizer.encode(texts)


def test_a_token_that_the_vocabulary_lacks_writes_nothing(tokenizer: Tokenizer) -> None:
    [dog] = tokenizer.encode(["the dog"])
    unknown = max(tokenizer.target_vocabulary().values()) + 1
    assert tokenizer.piece(unknown) == ""
    tokens = [token.token for token in tokenizer.target_tokens([*dog, unknown])]
    assert tokens == [*(token.token for token in tokenizer.target_tokens(dog)), ""]


def test_bytes_that_are_no_character_are_left_out_of_translations(normalizing: Tokenizer) -> None:
    half = next(i for i in normalizing.target_vocabulary().values() if normalizing.piece(i) == b"\xf0")
    (dog,) = normalizing.encode(["dog"])
    assert normalizing.decode([[*dog, half]]) == ["dog"]


@pytest.fixture
def normalizing(tmp_path: Path) -> Tokenizer:
    """One that has "é" and "m2" in its vocabulary."""
    path = tmp_path / "tokenizer.json"
    byte_level_bpe(["été, m2 dog."], normalizers.Replace("\u00ad", ""), normalizers.NFKC()).save(str(path))
    return Tokenizer(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~", True),
        ("é", True),
        ("e\u0301t", True),
        ("\u0301", False),
        ("m²", False),
        ("＝５", True),
        ("É", True),
        ("，", True),
        ("ｄ", True),
        ("ñ", False),
        ("²", False),
        ("。", False),
        (">", False),
        ("a=", True),
    ],
)
def test_a_vocabulary_writes_what_it_has_in_more_than_bytes(normalizing: Tokenizer, text: str, expected: bool) -> None:
    assert normalizing.can_write(text) == expected


def test_tokens_of_a_source_cover_the_text_as_it_was_sent(normalizing: Tokenizer) -> None:
    text = "e\u0301té， ｄog\u00ad… e\u0301"
    assert normalizing.encode([text]) == normalizing.encode(["été, dog... é"])
    words = {text[token.start : token.end] for token in normalizing.source_tokens(text)}
    assert {"e\u0301té", "，", "ｄog", "e\u0301"} <= words


def test_the_end_of_sequence_covers_nothing(tokenizer: Tokenizer) -> None:
    assert [(token.start, token.end) for token in tokenizer.source_tokens("a cat")] == [(0, 1), (2, 5), (5, 5)]


def test_any_white_space_is_read_as_a_space(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(["a\u00a0b\u202fc\td\ne"]) == tokenizer.encode(["a b c d e"])


def test_a_special_token_in_a_users_text_is_text(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode(["the </s> dog"])
    assert ids.count(EOS) == 1


def test_a_tokenizer_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "été ▁": 1}, "[UNK]")).save(str(path))
    with pytest.raises(ArtifactRefused, match=r"tokenizer\.json: .*byte-level"):
        Tokenizer(path)


def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ArtifactRefused, match=r"tokenizer\.json"):
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


LONG = ["a" * MAX_CHARACTERS_WITHOUT_THREAD, "b" * MAX_CHARACTERS_WITHOUT_THREAD]


@pytest.mark.anyio
async def test_each_of_several_texts_is_worked_on_in_order() -> None:
    assert await run_on_each(["abc", "d"], len, 4, PATIENCE_S) == [3, 1]
    lengths = await run_on_each(LONG, len, 2 * MAX_CHARACTERS_WITHOUT_THREAD, PATIENCE_S)
    assert lengths == [MAX_CHARACTERS_WITHOUT_THREAD, MAX_CHARACTERS_WITHOUT_THREAD]


@pytest.mark.anyio
@pytest.mark.parametrize("reason", ["deadline", "client gone"])
async def test_texts_that_nobody_waits_for_are_left(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, threads = Slow(), ThreadPoolExecutor()
    monkeypatch.setattr("service.text.tokenization._THREADS", threads)
    timeout_s = 0.001 if reason == "deadline" else PATIENCE_S
    waiting = asyncio.ensure_future(run_on_each(LONG, slow, 2 * MAX_CHARACTERS_WITHOUT_THREAD, timeout_s))
    if reason == "deadline":
        with pytest.raises(DeadlinePassed):
            await waiting
    else:
        assert await asyncio.to_thread(slow.begun.wait, PATIENCE_S)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    slow.gate.set()
    threads.shutdown()  # waits for the thread
    assert slow.read in (["a"], [])
