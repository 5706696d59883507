import numpy as np
import torch

from model.config import NGramConfig
from model.networks.ngrams import NGramLogits

V, C = 50, 3
GOOD, BAD, NOT, FILM, A = 10, 11, 12, 13, 14


def n_grams(longest: int = 3) -> NGramLogits:
    return NGramLogits(V, C, NGramConfig(buckets=997, longest=longest))


def counted() -> NGramLogits:
    counted = n_grams(longest=2)
    texts = [[FILM, GOOD], [FILM, NOT, BAD], [FILM, BAD], [FILM, NOT, GOOD], [FILM, A]]
    counted.count([np.array(text, dtype=np.int32) for text in texts], [1, 1, 0, 0, 2])
    torch.nn.init.ones_(counted.weight)
    assert counted.scale is not None
    return counted


def logits_of(model: NGramLogits, texts: list[list[int]]) -> torch.Tensor:
    """Of texts of one length."""
    logits: torch.Tensor = model(torch.tensor(texts), torch.tensor([len(text) for text in texts]))
    return logits


def test_runs_tell_what_single_words_cannot() -> None:
    logits = logits_of(counted(), [[FILM, GOOD], [NOT, GOOD], [FILM, BAD], [NOT, BAD]])[:, 1]  # the second token's
    assert (logits[:, 1] > logits[:, 0]).tolist() == [True, False, False, True]


def test_a_text_counts_a_word_once_however_often_it_says_it() -> None:
    once, often = n_grams(), n_grams()
    once.count([np.array(text, dtype=np.int32) for text in [[GOOD], [BAD]]], [1, 0])
    often.count([np.array(text, dtype=np.int32) for text in [[GOOD, GOOD, GOOD], [BAD]]], [1, 0])
    assert once.scale is not None
    assert often.scale is not None
    assert once.scale[GOOD, 0] > 0
    assert (often.scale[GOOD] / once.scale[GOOD] - 1).abs().max() < 0.01  # but for the runs, which it has as well


def test_a_tokens_logits_do_not_depend_on_what_comes_after_it() -> None:
    torch.testing.assert_close(
        logits_of(counted(), [[FILM, NOT, GOOD]])[:, :2], logits_of(counted(), [[FILM, NOT, BAD]])[:, :2]
    )


def test_logits_are_the_sum_of_the_weights_of_every_run() -> None:
    model = n_grams()
    torch.nn.init.normal_(model.weight)
    ids = [FILM, NOT, GOOD]
    m, pad = 1_000_003, 0
    padded = [pad, pad, *ids]
    for i in range(3):
        before_before, before, token = padded[i : i + 3]
        pair = V + (before * m + token) % 997
        triple = V + ((before_before * m + before) * m + token) % 997
        sums = torch.cat([torch.zeros(1), (model.weight[token] + model.weight[pair] + model.weight[triple]).detach()])
        torch.testing.assert_close(logits_of(model, [ids])[0, i], sums - sums.mean())


def test_taking_the_scale_into_the_weights_changes_no_logit() -> None:
    model = counted()
    torch.nn.init.normal_(model.weight)
    before = logits_of(model, [[FILM, NOT, GOOD, A]])
    model.fold()
    torch.testing.assert_close(logits_of(model, [[FILM, NOT, GOOD, A]]), before)
    assert set(model.state_dict()) == {"weight", "prior"}


def test_padding_is_not_pooled() -> None:
    model = counted()
    short, padded = torch.tensor([[FILM, NOT, GOOD]]), torch.tensor([[FILM, NOT, GOOD, 0, 0]])
    torch.testing.assert_close(model.pooled(padded, torch.tensor([3])), model.pooled(short, torch.tensor([3])))
    torch.testing.assert_close(
        model.pooled(short, torch.tensor([3]))[0], logits_of(model, short.tolist())[0].mean(dim=0)
    )


def test_a_short_text_counts_less_of_the_same_words() -> None:
    model = counted()
    model.prior.fill_(6)
    without_prior = counted()
    once, often = [GOOD, GOOD], [GOOD] * 18
    for ids, share in ((once, 2 / 8), (often, 18 / 24)):
        torch.testing.assert_close(logits_of(model, [ids]), share * logits_of(without_prior, [ids]))
