"""With the shipped models a translation begins as the client says, and its own beginnings lead back to it."""

import httpx
import pytest

from tests.end_to_end.test_slots import DIRECTIONS, SENTENCES, translated

pytestmark = pytest.mark.process

KEPT = ["{name}", "https://example.org/a?b=1"]
SPANS = [KEPT[0], "Berlin", "12", KEPT[1]]


def completed(server: httpx.Client, direction: str, text: str, step: int = 1, **options: object) -> tuple[int, int]:
    """Complete beginnings of the translation of a text. Return how many there are, and how many led back to it."""
    [whole] = translated(server, direction, [text], **options)
    prefixes = [whole["text"][:n] for n in range(0, len(whole["text"]) + 1, step)]
    answers = translated(server, direction, [text] * len(prefixes), target_prefix=prefixes, checks=True, **options)
    for prefix, answer in zip(prefixes, answers, strict=True):
        assert answer["text"].startswith(prefix)
        for span in KEPT:
            assert answer["text"].count(span[:5]) == answer["text"].count(span) == text.count(span), prefix
    return len(prefixes), sum(answer["text"] == whole["text"] for answer in answers)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_greedy_translation_is_the_completion_of_its_beginnings(server: httpx.Client, direction: str) -> None:
    texts = SENTENCES[direction[:2]]
    plain = [text.format(*["Berlin"] * 6) for text in texts[4:8]]
    counted = [completed(server, direction, text, beam_size=1) for text in plain]
    n, n_same = map(sum, zip(*counted, strict=True))
    assert n_same >= 0.95 * n, (n, n_same)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4}, {"beam_size": 4, "alternatives": 2}])
def test_lines_sentences_and_kept_spans_begin_as_they_must(
    server: httpx.Client, direction: str, options: dict[str, int]
) -> None:
    first, second, third = (text.format(*SPANS) for text in SENTENCES[direction[:2]][:3])
    n, n_same = completed(server, direction, f"{first} {second}\n- {third}", step=7, **options)
    # Alternatives make the beams of the whole translation wider than those of its completions.
    assert "alternatives" in options or n_same >= 0.7 * n, (n, n_same)


def test_a_beginning_is_the_same_alone_as_in_a_crowd(server: httpx.Client) -> None:
    texts = [text.format(*SPANS) for text in SENTENCES["en"][:6]]
    prefixes = ["Bonj", "Veuillez ouv", "Copiez {name", "", "Mon frère a vu ", "Vo"]
    for options in ({"beam_size": 1}, {"beam_size": 4, "alternatives": 3}):
        together = translated(server, "en-fr", texts, target_prefix=prefixes, **options)
        for text, prefix, answer in zip(texts, prefixes, together, strict=True):
            assert translated(server, "en-fr", [text], target_prefix=[prefix], **options) == [answer]
            for other in [answer, *answer.get("alternatives", [])]:
                assert other["text"].startswith(prefix)


def test_checks_tell_what_a_beginning_has_wrong(server: httpx.Client) -> None:
    text = "The bill is $344.75. The bill is $344.75. We have 12,000 dogs and 7 cats."
    prefixes = ["Die Rechnung beträgt 999 ", "Die Rechnung ist 344,75 $. Die Rechnung ist 3", ""]
    answers = translated(server, "en-de", [text] * 3, target_prefix=prefixes, checks=True, alternatives=2)
    for prefix, answer in zip(prefixes, answers, strict=True):
        for other in [answer, *answer.get("alternatives", [])]:
            assert other["text"].startswith(prefix)
        assert answer["text"].count("344,75") == 2
    assert [[check["source"] for check in answer["checks"] if not check["mended"]] for answer in answers] == [
        ["The bill is $344.75."],
        [],
        [],
    ]
