"""Two texts are joined and cut as the library of tokenizers does it, which other software uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from service.schemas.requests import CutEnd
from service.text.pairs import PairTemplate

SPECIAL = {"[CLS]": 0, "[SEP]": 1}
TEMPLATES = {"bert": "[CLS] $A [SEP] $B:1 [SEP]:1", "roberta": "[CLS] $A [SEP] [SEP] $B [SEP]", "short": "$A [SEP] $B"}


def tokenizer_of(template: str) -> Tokenizer:
    words = {**SPECIAL, "a": 2, **{f"w{i}": i for i in range(3, 60)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A", TEMPLATES[template], [*SPECIAL.items()])
    return tokenizer


@pytest.mark.parametrize("template", TEMPLATES)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(8, 70), st.sampled_from(["left", "right"]))
def test_pairs_are_cut_as_the_library_cuts_them(
    template: str, n_first: int, n_second: int, limit: int, cut_end: CutEnd
) -> None:
    tokenizer = tokenizer_of(template)
    first, second = ([*range(start, start + n)] for start, n in ((3, n_first), (30, n_second)))
    pair = PairTemplate.of(tokenizer).join(first, second, limit, cut_end)
    tokenizer.enable_truncation(limit, strategy="longest_first", direction=cut_end)
    expected = tokenizer.encode(*(" ".join(f"w{i}" for i in ids) for ids in (first, second)))
    assert pair.token_ids == expected.ids
    tokenizer.no_truncation()
    n_special = tokenizer.num_special_tokens_to_add(is_pair=True)
    assert pair.n_left_out == n_first + n_second + n_special - len(expected.ids)
