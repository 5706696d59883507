from tokenizers import Tokenizer, models, pre_tokenizers, processors

from benchmarks.random_model import random_tokenizer
from benchmarks.texts import GROUP, Sentence, load_sentences, works_of_random_ids
from service.text.tokens import piece_reader


def words_as_tokens() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 3}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 3)])
    return tokenizer


def test_random_works_are_as_long_as_the_sentences_and_end_together_in_groups() -> None:
    sentences = [Sentence("a " * (1 + i % 9), "b " * (1 + i % 7)) for i in range(3 * GROUP)]
    works = works_of_random_ids(sentences, words_as_tokens(), range(4, 50), eos=3)

    assert [len(work.source_ids) for work in works] == [2 + i % 9 for i in range(3 * GROUP)]
    assert all(work.source_ids[-1] == 3 and all(4 <= i < 50 for i in work.source_ids[:-1]) for work in works)
    assert len({work.max_target_tokens for work in works}) <= 3
    assert all(work.fixed_length for work in works)
    assert works == works_of_random_ids(sentences, words_as_tokens(), range(4, 50), eos=3)


def test_without_data_there_are_sentences_of_mixed_lengths() -> None:
    sentences = load_sentences(None, 100)
    lengths = {len(sentence.text.split()) for sentence in sentences}

    assert len(sentences) == 100
    assert len({sentence.text for sentence in sentences}) == 64
    assert min(lengths) <= 3
    assert max(lengths) >= 20


def test_the_service_reads_the_tokens_of_the_random_model() -> None:
    assert piece_reader(random_tokenizer().decoder.decode)("t7") == b"t7"
