"""Pairs of words that a translator copies: a source token and the target token that it always becomes.

Text that must come out unchanged is replaced by the source word of a pair; the target token then shows where it went.
Pairs are found by trying every word of the vocabulary in a few sentences.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import langcodes
import numpy as np
from langcodes.tag_parser import LanguageTagError

from export.decoding import Translator
from manifest.schema import Manifest
from model.checkpoint import Checkpoint

PROBES = {
    "en": ["{} is in the house.", "I saw {} yesterday.", "This is for {}.", "Where is {}?", "We talked about {}.",
           "{} and I are here.", "Do you know {}?", "She went with {} to the station."],
    "fr": ["{} est dans la maison.", "J'ai vu {} hier.", "C'est pour {}.", "Où est {} ?", "Nous avons parlé de {}.",
           "{} et moi sommes ici.", "Connais-tu {} ?", "Elle est allée avec {} à la gare."],
    "de": ["{} ist im Haus.", "Ich habe {} gestern gesehen.", "Das ist für {}.", "Wo ist {}?",
           "Wir haben über {} gesprochen.", "{} und ich sind hier.", "Kennst du {}?", "Sie ging mit {} zum Bahnhof."],
    "ru": ["{} в доме.", "Я вчера видел {}.", "Это для {}.", "Где {}?", "Мы говорили про {}.", "{} и я здесь.",
           "Ты знаешь {}?", "Она думает про {} и молчит."],
    "ja": ["{}は家にいます。", "昨日{}を見ました。", "これは{}のためです。", "{}はどこですか。", "{}を知っていますか。",
           "私たちは{}について話しました。", "{}と私はここにいます。", "彼女は{}と駅に行きました。"],
}  # fmt: skip
"""Sentences with a place for one word, by source language."""
PROBES_FOR_SEVERAL = {
    "en": ["{} and {} are in the house.", "Open {}, then {}.", "She gave {} to {} yesterday.", "It goes from {} to {}.",
           "{}, {} and {} were there.", "Set {} to {} in {}.", "I like {} more than {}.", "Where are {} and {}?"],
    "fr": ["{} et {} sont dans la maison.", "Ouvrez {}, puis {}.", "Elle a donné {} à {} hier.", "Cela va de {} à {}.",
           "{}, {} et {} étaient là.", "Mettez {} à {} dans {}.", "J'aime {} plus que {}.", "Où sont {} et {} ?"],
    "de": ["{} und {} sind im Haus.", "Öffne {}, dann {}.", "Sie gab gestern {} an {}.", "Es geht von {} nach {}.",
           "{}, {} und {} waren dort.", "Setze {} auf {} in {}.", "Ich mag {} mehr als {}.", "Wo sind {} und {}?"],
    "ru": ["{} и {} в доме.", "Откройте {}, потом {}.", "Вчера она дала {} и {}.", "Это идёт от {} до {}.",
           "{}, {} и {} были там.", "Поставьте {} и {} в {}.", "Я люблю {} больше, чем {}.", "Где {} и {}?"],
    "ja": ["{}と{}は家にいます。", "{}を開いて、次に{}を開きます。", "昨日彼女は{}に{}をあげました。",
           "{}から{}まで行きます。", "{}、{}と{}がそこにいました。", "{}の{}を{}にします。", "私は{}より{}が好きです。",
           "{}と{}はどこですか。"],
}  # fmt: skip
"""Sentences with places for several words, by source language."""
ROUNDS = 12
"""Times that each word is tried in each of the sentences for several words."""
MAX_PAIRS = 16
"""Largest number of word pairs that are kept; digits are kept in addition."""
MAX_TRIED_TOGETHER = 64
"""Largest number of words tried together with others: the most probable of those copied alone."""
MIN_SHARE_TOGETHER = 0.5
"""Smallest share of the sentences for several words in which a word must be copied."""
SMALL_VOCABULARY, MAX_WORDS = 16_000, 600
"""Of a larger vocabulary only the first words are tried, which are the most frequent."""
MIN_PROBES_PASSED = 7
"""Smallest number of sentences for one word in which it must be copied."""
MAX_FINDERS = 4
"""Largest number of words whose translations may have the same target token: more, and it is of the sentences."""
MAX_TARGET_TOKENS = 48
"""Largest number of target tokens: the sentences are short, and a longer target repeats itself."""


@dataclass
class _Word:
    source_id: int
    text: str
    target_id: int = -1
    tries: int = 0
    came_through: int = 0
    scores: list[float] = field(default_factory=list)

    @property
    def sureness(self) -> tuple[float, float]:
        return self.came_through / max(1, self.tries), float(np.mean(self.scores))


def find_slots(directory: Path, manifest: Manifest, checkpoint: Checkpoint) -> tuple[tuple[int, int], ...]:
    """Return pairs of a source and a target token of an artifact that can be run, most reliable first; none for
    languages without probes here."""
    if (len(manifest.sources), len(manifest.targets)) != (1, 1) or _subtag(manifest.sources[0].code) not in PROBES:
        return ()
    finder = _Finder(directory, manifest, checkpoint)
    return tuple((word.source_id, word.target_id) for word in finder.surest())


class _Finder:
    def __init__(self, directory: Path, manifest: Manifest, checkpoint: Checkpoint) -> None:
        self._translator = Translator(directory, manifest, n_rows=64)
        self._checkpoint = checkpoint
        self._vocab_size = manifest.dimensions.vocab_size
        self._max_target_tokens = min(MAX_TARGET_TOKENS, manifest.limits.max_target_tokens)
        self._max_source_tokens = manifest.limits.max_source_tokens
        self._source, self._target = (_subtag(language.code) for language in (manifest.sources[0], manifest.targets[0]))

    def surest(self) -> list[_Word]:
        """Return the words that are copied alone, ordered by how often they are copied among others."""
        alone = self._alone()
        words = [w for w in alone if not w.text.isdigit()][:MAX_TRIED_TOGETHER] + [w for w in alone if w.text.isdigit()]
        rng = random.Random(0)  # noqa: S311  the same words are tried together every time
        tried: list[tuple[str, list[_Word]]] = []
        for sentence in PROBES_FOR_SEVERAL[self._source] * ROUNDS:
            order = rng.sample(words, len(words))
            n = sentence.count("{}")
            tried += [(sentence, order[i : i + n]) for i in range(0, len(order) - n + 1, n)]
        for (_, together), target in zip(tried, self._translated(tried), strict=True):
            for word in together if target is not None else []:
                word.tries += 1
                word.came_through += target.count(word.target_id) == 1  # type: ignore[union-attr]
        sure = [word for word in words if word.tries and word.sureness[0] >= MIN_SHARE_TOGETHER]
        sure.sort(key=lambda word: word.sureness, reverse=True)
        numbers = [word for word in sure if word.text.isdigit()]
        return [word for word in sure if word not in numbers][:MAX_PAIRS] + numbers

    def _alone(self) -> list[_Word]:
        """Return words that become one target token in nearly every sentence, as few others do; most probable first."""
        words = [_Word(*word) for word in self._whole_words()]
        tried = [(sentence, [word]) for word in words for sentence in PROBES[self._source]]
        targets: dict[int, list[list[int]]] = defaultdict(list)
        for (_, [word]), target in zip(tried, self._translated(tried), strict=True):
            if target is not None:
                targets[word.source_id].append(target)
        found_by = Counter(token for each in targets.values() for token in {t for target in each for t in target})
        copied = []
        for word in words:
            each = targets[word.source_id]
            times = Counter(token for target in each for token, count in Counter(target).items() if count == 1)
            certain = [
                (-n, found_by[token], token)
                for token, n in times.items()
                if n >= MIN_PROBES_PASSED
                and found_by[token] <= MAX_FINDERS
                and self._is_whole_word(token, each, word.text.isdigit())
            ]
            if certain:
                word.target_id = min(certain)[2]
                copied.append(word)
        copied.sort(key=lambda word: -float(np.mean(word.scores)))
        best = {word.target_id: word for word in reversed(copied)}
        return [word for word in copied if best[word.target_id] is word]

    def _translated(self, tried: Sequence[tuple[str, list[_Word]]]) -> Iterator[list[int] | None]:
        """Yield the tokens of each translation; None if a word is not one token of its sentence."""
        texts = [sentence.format(*(word.text for word in words)) for sentence, words in tried]
        sources = self._checkpoint.encode(texts)
        fits = [
            len(source) <= self._max_source_tokens and all(source.count(word.source_id) == 1 for word in words)
            for source, (_, words) in zip(sources, tried, strict=True)
        ]
        hypotheses = iter(
            self._translator.greedy([s for s, fit in zip(sources, fits, strict=True) if fit], self._max_target_tokens)
        )
        for fit, (_, words) in zip(fits, tried, strict=True):
            if not fit:
                yield None
                continue
            hypothesis = next(hypotheses)
            for word in words if len(words) == 1 else []:
                word.scores.append(hypothesis.score)
            yield hypothesis.ids

    def _whole_words(self) -> Iterator[tuple[int, str]]:
        words = [self._checkpoint.decode([token_id], of="source").strip() for token_id in range(self._vocab_size)]
        # Parts of words are left out: "Stre" of "Street", "行機" of "飛行機".
        parts = {part for word in words for n in range(1, len(word)) for part in (word[:n], word[n:])}
        whole = (
            (token_id, word)
            for token_id, word in enumerate(words)
            if _may_be(word, self._source, False) and (word not in parts or word.isdigit())
        )
        yield from islice(whole, None if self._vocab_size <= SMALL_VOCABULARY else MAX_WORDS)

    def _is_whole_word(self, token_id: int, targets: list[list[int]], is_digit: bool) -> bool:
        """Whether a target token is a name, word or digit to which nothing is added in any of these targets."""
        word = self._checkpoint.decode([token_id]).strip()
        if word.isdigit() != is_digit or not _may_be(word, self._target, self._source == "ja"):
            return False
        for target in targets:
            place = target.index(token_id) if token_id in target else None
            if place is None or self._target == "ja":
                continue
            before = self._checkpoint.decode(target[: place + 1])
            after = self._checkpoint.decode(target[: place + 2])
            if before[: -len(word)][-1:].isalnum() or after[len(before) :][:1].isalnum():
                return False
        return True


def _subtag(code: str) -> str:
    try:
        return langcodes.standardize_tag(code, macro=True).split("-")[0]
    except LanguageTagError:
        return code


def _may_be(word: str, language: str, is_target_of_japanese: bool) -> bool:
    """Whether a word may be part of a pair: a name, or the translation of a Japanese word. Japanese words must be kanji
    or Latin letters, because kana may be any part of a word. A digit above 1 may be one, for numbers."""
    if word.isdigit():
        return len(word) == 1 and int(word) > 1
    if language == "ja":
        return len(word) >= 2 and word.isalpha() and (_is_kanji(word) or word.isascii())
    return len(word) >= 4 and word.isalpha() and (word[0].isupper() or is_target_of_japanese)


def _is_kanji(word: str) -> bool:
    return all("\u4e00" <= letter <= "\u9fff" for letter in word)
