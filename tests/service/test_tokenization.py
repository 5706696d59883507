from pathlib import Path

import pytest

from service.errors import ArtifactRefused
from service.tokenization import Tokenizer
from tests.service.tiny_artifacts import EOS


@pytest.fixture
def tokenizer(artifacts: Path) -> Tokenizer:
    return Tokenizer(artifacts / "tiny-en-fr" / "tokenizer.json")


def test_a_source_ends_with_the_end_of_sequence_and_decoding_drops_it(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode(["the dog runs", "a cat"])
    assert [ids[-1] for ids in encoded] == [EOS, EOS]
    assert tokenizer.decode(encoded) == ["the dog runs", "a cat"]


def test_a_special_token_in_a_users_text_is_text(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode(["the </s> dog"])
    assert ids.count(EOS) == 1


def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ArtifactRefused, match=r"tokenizer\.json: not a tokenizer"):
        Tokenizer(path)
