import numpy as np
import torch

from model.ngrams import GAIN, NGramLogits

V, BUCKETS, C = 50, 64, 2
GOOD, BAD, NOT, FILM = 10, 11, 12, 13


def counted() -> NGramLogits:
    texts = [[FILM, GOOD], [FILM, NOT, BAD], [FILM, BAD], [FILM, NOT, GOOD]]
    n_grams = NGramLogits(V, BUCKETS, C)
    n_grams.count([np.array(text, dtype=np.int32) for text in texts], [1, 1, 0, 0])
    torch.nn.init.constant_(n_grams.weight, 1 / GAIN)
    return n_grams


def test_pairs_tell_what_single_words_cannot() -> None:
    logits = counted()(torch.tensor([[FILM, GOOD], [NOT, GOOD], [FILM, BAD], [NOT, BAD]]))[:, 1]  # the second token's
    assert (logits[:, 1] > logits[:, 0]).tolist() == [True, False, False, True]


def test_a_word_that_is_as_frequent_under_every_label_says_nothing() -> None:
    n_grams = counted()
    torch.testing.assert_close(n_grams.ratios[FILM, 0], n_grams.ratios[FILM, 1], atol=0.1, rtol=0)


def test_a_text_counts_a_word_once_however_often_it_says_it() -> None:
    once, often = NGramLogits(V, BUCKETS, C), NGramLogits(V, BUCKETS, C)
    texts = [[GOOD, FILM], [BAD, FILM]]
    once.count([np.array(text, dtype=np.int32) for text in texts], [1, 0])
    often.count(
        [np.array(text, dtype=np.int32) for text in [[GOOD, FILM, GOOD, FILM, GOOD, FILM], [BAD, FILM]]], [1, 0]
    )
    torch.testing.assert_close(often.ratios[GOOD, 1] > 0, once.ratios[GOOD, 1] > 0)
    assert (often.ratios[GOOD] - once.ratios[GOOD]).abs().max() < 0.3


def test_a_tokens_logits_do_not_depend_on_what_comes_after_it() -> None:
    n_grams = counted()
    torch.testing.assert_close(
        n_grams(torch.tensor([[FILM, NOT, GOOD]]))[:, :2], n_grams(torch.tensor([[FILM, NOT, BAD]]))[:, :2]
    )
