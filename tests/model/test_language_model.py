"""The causal language model and its continuations."""

import math
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from model.checkpoint import Checkpoint, CheckpointError
from model.config import LanguageModelConfig
from model.decoding.generation import GenerationError, Sampler, continuation, continuation_uncached, generate
from model.evaluation.perplexity import measure_perplexity
from model.networks.language_model import LanguageModel
from model.networks.transformer import Transformer
from model.tokenizer import BOS_ID, EOS_ID
from model.training.examples import text_windows
from tests.model.tiny_configs import LANGUAGE_MODEL, configured

TEXTS = ["A dog runs on the beach.", "Deux hommes jouent aux échecs dans le parc, et il pleut.", "No"]


VARIANTS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm, rotary": {"norm": "pre", "positions": "rotary", "activation": "swiglu"},
    "learned, hard": {"norm": "pre", "positions": "learned", "activation": "gelu", "attention": "hard"},
    "no positions, beta": {"positions": "none", "beta": 0.7},
}


@pytest.fixture(params=VARIANTS)
def language_model(request: pytest.FixtureRequest) -> LanguageModel:
    return build(**VARIANTS[request.param])


def build(**changed: Any) -> LanguageModel:
    return LanguageModel(LanguageModelConfig.model_validate(LANGUAGE_MODEL | {"vocab_size": 320} | changed)).eval()


def checkpoint(model: LanguageModel | Transformer, tokenizer: Tokenizer) -> Checkpoint:
    return Checkpoint(configured(model.config.model_dump()), model, tokenizer, {})


@pytest.fixture
def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that adds no </s>, as for a language model."""
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.post_processor = None  # type: ignore[assignment]
    return plain


def test_the_future_changes_nothing(language_model: LanguageModel) -> None:
    ids = torch.randint(4, 320, (2, 9))
    hidden = language_model(ids)
    for place in range(1, 9):
        changed = torch.cat([ids[:, :place], torch.randint(4, 320, (2, 9 - place))], dim=1)
        torch.testing.assert_close(language_model(changed)[:, :place], hidden[:, :place])
    torch.testing.assert_close(language_model(ids[:, :4]), hidden[:, :4])


@pytest.mark.parametrize("name", ["post-norm", "pre-norm, rotary"])
def test_the_past_changes_what_is_predicted(name: str) -> None:
    language_model = build(**VARIANTS[name])
    ids = torch.randint(4, 320, (1, 6))
    changed = ids.clone()
    changed[0, 0] = 4 + (ids[0, 0] - 3) % 316
    assert not torch.allclose(language_model(ids)[:, -1], language_model(changed)[:, -1], atol=1e-5)


@pytest.mark.parametrize("pieces", [[9], [1] * 9, [4, 1, 3, 1]])
def test_a_text_in_pieces_gives_what_it_gives_at_once(language_model: LanguageModel, pieces: list[int]) -> None:
    ids = torch.randint(4, 320, (3, 9))
    expected = language_model.logits(language_model(ids))
    caches, start = language_model.init_caches(3, cache_length=11), 0
    for size in pieces:
        logits = language_model.step(ids[:, start : start + size], start, caches)
        start += size
        torch.testing.assert_close(logits, expected[:, start - 1])


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.5}, {"temperature": 0.7, "top_k": 5}])
def test_cached_continuation_equals_uncached(language_model: LanguageModel, settings: dict[str, Any]) -> None:
    prompt = [BOS_ID, 7, 8, 9]
    cached = continuation(language_model, prompt, 20, Sampler(**settings))
    assert cached == continuation_uncached(language_model, prompt, 20, Sampler(**settings))
    assert len(cached) <= 20


def test_a_seed_gives_its_text_again_and_another_seed_another(
    language_model: LanguageModel, plain_tokenizer: Tokenizer
) -> None:
    of_model = checkpoint(language_model, plain_tokenizer)
    first, again, other = (generate(of_model, "A dog", 20, Sampler(1.0, seed=seed)) for seed in (3, 3, 4))
    assert first == again != other


def test_a_continuation_begins_with_its_text(language_model: LanguageModel, plain_tokenizer: Tokenizer) -> None:
    of_model = checkpoint(language_model, plain_tokenizer)
    assert all(generate(of_model, text, 5, Sampler(1.0)).startswith(text) for text in ["", *TEXTS])


def test_the_end_of_the_text_ends_it() -> None:
    model = build()
    script = iter([8, 9, EOS_ID, 10])
    assert continuation(model, [BOS_ID], 10, lambda logits: next(script)) == [8, 9]


def test_draws_are_of_the_most_probable_tokens_alone_and_as_often_as_they_are_probable() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0])
    sampler = Sampler(temperature=0.5, top_k=2)
    drawn = [sampler(logits) for _ in range(2000)]
    assert set(drawn) == {1, 3}
    assert drawn.count(1) / 2000 == pytest.approx(1 / (1 + math.exp(-2)), abs=0.03)
    assert Sampler(temperature=1.0, top_k=1)(logits) == Sampler()(logits) == 1
    from_all = Sampler(temperature=5.0, top_k=99)
    assert {from_all(logits) for _ in range(200)} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"temperature": -0.5}, "`temperature` is -0.5"), ({"temperature": 1.0, "top_k": 0}, "`top_k` is 0; it must")],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        Sampler(**settings)


def test_too_long_a_continuation_is_refused_with_the_numbers(
    language_model: LanguageModel, plain_tokenizer: Tokenizer
) -> None:
    text = "no " * 40
    n = len(plain_tokenizer.encode(text).ids) + 1
    with pytest.raises(GenerationError, match=f"the text has {n} tokens, with 60 more .* {n + 60}; the limit is 64"):
        generate(checkpoint(language_model, plain_tokenizer), text, 60, Sampler())


def test_a_translator_continues_no_text(transformer: Transformer, tokenizer: Tokenizer) -> None:
    with pytest.raises(CheckpointError, match="tiny is no language model: its task is translation"):
        generate(checkpoint(transformer, tokenizer), "A dog", 5, Sampler())


def test_windows_hold_every_token_once_and_the_end_of_each_text(plain_tokenizer: Tokenizer) -> None:
    windows = [window.tolist() for window in text_windows(plain_tokenizer, TEXTS, 7)]
    assert max(map(len, windows)) == 7
    assert [i for window in windows for i in window] == [
        i for text in TEXTS for i in [*plain_tokenizer.encode(text).ids, EOS_ID]
    ]


@torch.inference_mode()
@pytest.mark.parametrize("size", [7, 40])
def test_perplexity_is_of_every_token_given_its_window_and_bits_are_of_every_byte(
    language_model: LanguageModel, plain_tokenizer: Tokenizer, size: int
) -> None:
    log_probs = []
    for window in text_windows(plain_tokenizer, TEXTS, size):
        ids = [BOS_ID, *window.tolist()]
        for place in range(1, len(ids)):
            predicted = language_model.logits(language_model(torch.tensor([ids[:place]]))[0, -1])
            log_probs.append(predicted.log_softmax(dim=-1)[ids[place]].item())
    scores = measure_perplexity(language_model, plain_tokenizer, TEXTS, size)
    assert scores["perplexity"] == pytest.approx(math.exp(-sum(log_probs) / len(log_probs)), abs=0.01)
    n_bytes = sum(len(text.encode()) for text in TEXTS)
    assert scores["bits_per_byte"] == pytest.approx(-sum(log_probs) / math.log(2) / n_bytes, abs=1e-4)
