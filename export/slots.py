"""Pairs of words that a translator copies: a source token and the target token that it becomes, wherever it stands.

In the place of what must come out of a translation unchanged, the model is shown the source word of a pair, and its
target token tells where that went. Pairs are found by trying every word of the vocabulary in a few sentences.
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
from export.manifest import Manifest
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
"""By source language, sentences that have room for a word."""

TOGETHER = {
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
"""Sentences that have room for several."""

ROUNDS = 12
"""How many words each word is tried together with, in each of these sentences."""

MOST_PAIRS = 16
"""Kept of words; digits are kept besides."""

MOST_TRIED = 64
"""Words that are tried together with others, the most probable of those that came through alone."""

LEAST_SURE = 0.5
"""Share of the sentences in which a word must come through among others."""

SMALL_VOCABULARY, MOST_WORDS = 16_000, 600
"""Of a vocabulary of more tokens so many words are tried, the first, which are the most frequent."""

ENOUGH_PROBES = 7
"""In how many of the sentences for one word it must come through."""

MOST_FINDERS = 4
"""Words that may have the same target token somewhere: it must not be what the sentence brings with it."""

MOST_TARGET_TOKENS = 48
"""Of one translation: the sentences are short, and what goes on for longer repeats itself."""


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
    """Pairs of source and target token of an artifact that can be run, the surest first; none for languages that have
    no probes here."""
    if (len(manifest.sources), len(manifest.targets)) != (1, 1) or _subtag(manifest.sources[0].code) not in PROBES:
        return ()
    finder = _Finder(directory, manifest, checkpoint)
    return tuple((word.source_id, word.target_id) for word in finder.surest())


class _Finder:
    def __init__(self, directory: Path, manifest: Manifest, checkpoint: Checkpoint) -> None:
        self._translator = Translator(directory, manifest, n_rows=64)
        self._checkpoint = checkpoint
        self._vocab_size = manifest.dimensions.vocab_size
        self._limit = min(MOST_TARGET_TOKENS, manifest.limits.max_target_tokens)
        self._longest = manifest.limits.max_source_tokens
        self._source, self._target = (_subtag(one.code) for one in (manifest.sources[0], manifest.targets[0]))

    def surest(self) -> list[_Word]:
        """Those that came through alone, by how often they came through among others."""
        alone = self._alone()
        words = [w for w in alone if not w.text.isdigit()][:MOST_TRIED] + [w for w in alone if w.text.isdigit()]
        rng = random.Random(0)  # noqa: S311  what is tried together is chosen once and for all
        tried: list[tuple[str, list[_Word]]] = []
        for sentence in TOGETHER[self._source] * ROUNDS:
            order = rng.sample(words, len(words))
            n = sentence.count("{}")
            tried += [(sentence, order[i : i + n]) for i in range(0, len(order) - n + 1, n)]
        for (_, together), target in zip(tried, self._translated(tried), strict=True):
            for word in together if target is not None else []:
                word.tries += 1
                word.came_through += target.count(word.target_id) == 1  # type: ignore[union-attr]
        sure = [word for word in words if word.tries and word.sureness[0] >= LEAST_SURE]
        sure.sort(key=lambda word: word.sureness, reverse=True)
        numbers = [word for word in sure if word.text.isdigit()]
        return [word for word in sure if word not in numbers][:MOST_PAIRS] + numbers

    def _alone(self) -> list[_Word]:
        """Words that become one and the same token in nearly every sentence, and few other words do; the most
        probable first."""
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
            own = [
                (-n, found_by[token], token)
                for token, n in times.items()
                if n >= ENOUGH_PROBES
                and found_by[token] <= MOST_FINDERS
                and self._is_whole_word(token, each, word.text.isdigit())
            ]
            if own:
                word.target_id = min(own)[2]
                copied.append(word)
        copied.sort(key=lambda word: -float(np.mean(word.scores)))
        best = {word.target_id: word for word in reversed(copied)}
        return [word for word in copied if best[word.target_id] is word]

    def _translated(self, tried: Sequence[tuple[str, list[_Word]]]) -> Iterator[list[int] | None]:
        """The tokens of each translation; None where a word is not one token of its sentence."""
        texts = [sentence.format(*(word.text for word in words)) for sentence, words in tried]
        sources = self._checkpoint.encode(texts)
        fits = [
            len(source) <= self._longest and all(source.count(word.source_id) == 1 for word in words)
            for source, (_, words) in zip(sources, tried, strict=True)
        ]
        hypotheses = iter(
            self._translator.greedy([s for s, fit in zip(sources, fits, strict=True) if fit], self._limit)
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
        """The words of the vocabulary that are a token each, and their tokens."""
        words = [self._checkpoint.decode([token_id], of="source").strip() for token_id in range(self._vocab_size)]
        # "Stre" of "Street" is none, nor "行機" of "飛行機".
        parts = {part for word in words for n in range(1, len(word)) for part in (word[:n], word[n:])}
        whole = (
            (token_id, word)
            for token_id, word in enumerate(words)
            if _may_be(word, self._source, False) and (word not in parts or word.isdigit())
        )
        yield from islice(whole, None if self._vocab_size <= SMALL_VOCABULARY else MOST_WORDS)

    def _is_whole_word(self, token_id: int, targets: list[list[int]], is_digit: bool) -> bool:
        """Whether a target token is a name or a word, or a digit, to which nothing is added in any of these targets."""
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
    """en of eng."""
    try:
        return langcodes.standardize_tag(code, macro=True).split("-")[0]
    except LanguageTagError:
        return code


def _may_be(word: str, language: str, is_target_of_japanese: bool) -> bool:
    """Whether it may be one of a pair: a name, or what Japanese words become. In Japanese only words of kanji, or in
    Latin letters, since kana may be any part of a word. Or a digit of several things, for what is a number."""
    if word.isdigit():
        return len(word) == 1 and int(word) > 1
    if language == "ja":
        return len(word) >= 2 and word.isalpha() and (_is_kanji(word) or word.isascii())
    return len(word) >= 4 and word.isalpha() and (word[0].isupper() or is_target_of_japanese)


def _is_kanji(word: str) -> bool:
    return all("\u4e00" <= letter <= "\u9fff" for letter in word)
