"""`python -m model other-names`: Japanese-English sentences with other names in them.

A seventh of Tatoeba's Japanese sentences is about Tom. Other people and places of ENAMDICT take his place, Mary's and
Boston's: "Tom likes dogs" becomes "Mr. Nakamura likes dogs", "トムは犬が好きだ" "中村さんは犬が好きだ". A name in kanji
can be read in several ways; it is one that a corpus has on both sides of a sentence.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.augmentation.edict import Entry, entries
from model.data import Row, read_tsv
from model.words import KATAKANA

VARIANTS = 2
"""Rows that are made of one."""
SEED = 1
FEWEST_ATTESTATIONS = 2
"""Sentences with a name in kanji and its reading: one may be chance."""
LEAST_SHARE = 0.2
"""Of the sentences with these kanji; in fewer they are rather a word, or part of another name."""
POLITE_SHARE = 0.6
"""Of surnames: with the Japanese for Mr. or Ms. behind them."""
KATAKANA_SHARE = 0.5
"""Of the names that are drawn."""
LATIN_SHARE = 0.2
"""Of foreign names: in Latin letters in Japanese too, as those of products and user names are."""
POLITE, TITLE = "さん", re.compile(r"\b(?:Mr|Ms|Mrs|Miss|Dr|Prof|Professor|Doctor|Aunt|Uncle)\b")
HONORIFIC = re.compile("さん|くん|君|ちゃん|様|さま|氏|先生|博士|夫人|おじ|おば")

ROMANIZED = re.compile(r"[A-Z][a-z]+(?:'[a-z]+)?")
NAME = re.compile(r"\b[A-Z][A-Za-z]{2,}(?:'(?!s\b)[a-z]+)?")
"""In capitals too, as some write surnames."""
KINDS = re.compile(r"\(([fgmps](?:,[a-z]+)*)\)")
"""Of the first label: given names of women, of either and of men, places, surnames."""
LONGEST = 4
"""Letters of a name in kanji."""
LONG_VOWELS = re.compile("(?<=o)[ou]|(?<=u)u")
"""English texts seldom write them: Kyouto is Kyoto."""


class Name(NamedTuple):
    english: str
    japanese: str


class CommonName(NamedTuple):
    """A name that many rows of a corpus have, and what may stand for it: kinds of ENAMDICT, one letter each."""

    english: str
    japanese: str
    kinds: str
    surnames: float
    """Share of these among the Japanese names that are drawn."""
    title: str
    """Of these."""


COMMON_NAMES = (
    CommonName("Tom", "トム", "gm", 0.5, "Mr."),
    CommonName("John", "ジョン", "gm", 0.5, "Mr."),
    CommonName("Mary", "メアリー", "f", 0.25, "Ms."),
    CommonName("Mary", "メアリ", "f", 0.25, "Ms."),
    CommonName("Boston", "ボストン", "p", 0, ""),
)
FREQUENT_SURNAMES = frozenset(
    "佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 斎藤 清水 山崎 "  # noqa: SIM905
    "池田 橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤 近藤 村上 遠藤 青木 坂本 福田 太田 "
    "西村 藤井 金子 岡本 藤原 三浦 中野 原田 松田 竹内 小野 中山 石田 上田 森田 柴田 酒井 工藤 横山 宮崎 宮本 "
    "内田 高木 安藤 島田 谷口 大野 高田 丸山 今井 河野 藤本 村田 武田 上野 杉山 増田 平野 大塚 千葉 久保 松井 "
    "小島 岩崎 桜井 野口 松尾 野村 木下 菊地 佐野 大西 杉本 新井".split()
)
"""Of people of today, where a corpus may be of those of old."""
SURNAME = "s"
FREQUENT_SHARE = 0.5
"""Of the surnames that are drawn."""
FLATTENED = 0.75
"""Power of how often a corpus has a name, in how often it is drawn."""


def other_name_rows(dictionary: Path, attesting: Sequence[Path], corpora: Sequence[Path]) -> Iterator[Row]:
    """Names alone, the most common first, then the rows of the corpora with other names in them; English first.

    Args:
        dictionary: the file named enamdict.
        attesting: corpora that tell which readings names in kanji have.
        corpora: whose sentences are rewritten.

    Raises:
        DataError: the dictionary or a corpus is missing or malformed.
    """
    rows = [row for path in corpora for row in read_tsv(path)]
    known = [row for path in attesting for row in read_tsv(path)]
    names = list(entries(dictionary))
    attested = attested_names(names, known)
    written = {word for row in (*known, *rows) for word in NAME.findall(row.left)}
    foreign = foreign_names(names, written)
    usual = reduce(or_, attested.values(), Counter[Name]())
    yield from (Row(*name) for name, _ in usual.most_common())
    yield from dict.fromkeys(Row(*name) for kind in foreign.values() for name in kind)
    yield from renamed(rows, attested, foreign)


def attested_names(names: Iterable[Entry], rows: Iterable[Row]) -> dict[str, Counter[Name]]:
    """By kind, names in kanji, each with the reading that it has most often, and how many rows have both."""
    kinds: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entry in names:
        if not KATAKANA.fullmatch(entry.headword) and 1 < len(entry.headword) <= LONGEST:
            for reading in romanized(entry):
                kinds[entry.headword][reading] |= _kinds(entry)
    counts: Counter[tuple[str, str]] = Counter()
    n_rows: Counter[str] = Counter()
    for row in rows:
        words = {word.capitalize() for word in NAME.findall(without_marks(row.left))}
        ends = range(2, LONGEST + 1)
        pieces = {row.right[start : start + n] for start in range(len(row.right)) for n in ends} & kinds.keys()
        n_rows.update(pieces)
        counts.update((kanji, reading) for kanji in pieces for reading in words & kinds[kanji].keys())
    best: dict[str, tuple[int, str]] = {}
    for (kanji, reading), n in counts.items():
        best[kanji] = max(best.get(kanji, (0, "")), (n, reading))
    by_kind: dict[str, Counter[Name]] = defaultdict(Counter)
    for kanji, (n, reading) in sorted(best.items()):  # in the same order in every process
        for kind in sorted(kinds[kanji][reading]):
            if n >= max(FEWEST_ATTESTATIONS, LEAST_SHARE * n_rows[kanji]):
                by_kind[kind][Name(reading, kanji)] = n
    return by_kind


def foreign_names(names: Iterable[Entry], written: set[str]) -> dict[str, list[Name]]:
    """By kind, names in katakana, each with the first of its spellings, where English texts have that."""
    by_kind: dict[str, list[Name]] = defaultdict(list)
    for entry in names:
        if KATAKANA.fullmatch(entry.headword) and entry.glosses and entry.glosses[0] in written:
            for kind in sorted(_kinds(entry)):
                by_kind[kind].append(Name(entry.glosses[0], entry.headword))
    return by_kind


def _kinds(entry: Entry) -> set[str]:
    labels = KINDS.match(entry.labels)
    return set(labels[1].split(",")) if labels else set()


def romanized(entry: Entry) -> set[str]:
    """Its reading, with long vowels and with short ones."""
    reading = without_marks(entry.glosses[0]) if entry.glosses else ""
    return {reading, LONG_VOWELS.sub("", reading)} if ROMANIZED.fullmatch(reading) else set()


def without_marks(text: str) -> str:
    """Without the signs above long vowels."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def renamed(
    rows: Iterable[Row], attested: Mapping[str, Counter[Name]], foreign: Mapping[str, Sequence[Name]]
) -> Iterator[Row]:
    """Rows in which names of `COMMON_NAMES` are others: half of them foreign ones, half Japanese ones."""
    random = np.random.default_rng(SEED)
    for row in rows:
        for _ in range(VARIANTS):
            new = row
            for common in COMMON_NAMES:
                if re.search(rf"\b{common.english}\b", new.left) and _japanese(common).search(new.right):
                    new = _exchanged(new, common, _drawn(new, common, attested, foreign, random))
            if new != row:
                yield new


def _japanese(common: CommonName) -> re.Pattern[str]:
    return re.compile(rf"(?<![ァ-ヴー]){common.japanese}(?![ァ-ヴー])")


def _exchanged(row: Row, common: CommonName, name: Name) -> Row:
    return Row(
        re.sub(rf"\b{common.english}\b", name.english, row.left), _japanese(common).sub(name.japanese, row.right)
    )


def _drawn(
    row: Row,
    common: CommonName,
    attested: Mapping[str, Counter[Name]],
    foreign: Mapping[str, Sequence[Name]],
    random: np.random.Generator,
) -> Name:
    """A name instead of a common one, with a title on both sides if it is a surname that has none there."""
    if random.random() < KATAKANA_SHARE:
        choices = [name for kind in common.kinds for name in foreign.get(kind, ())]
        name = choices[random.integers(len(choices))] if choices else Name(common.english, common.japanese)
        return Name(name.english, name.english) if random.random() < LATIN_SHARE else name
    is_surname = random.random() < common.surnames
    kinds = SURNAME if is_surname else common.kinds
    counts = [item for kind in kinds for item in attested.get(kind, Counter[Name]()).items()]
    if is_surname and random.random() < FREQUENT_SHARE:
        counts = [item for item in counts if item[0].japanese in FREQUENT_SURNAMES] or counts
    if not counts:
        return Name(common.english, common.japanese)
    weights = np.array([n for _, n in counts]) ** FLATTENED
    name, _ = counts[random.choice(len(counts), p=weights / weights.sum())]
    has_title = TITLE.search(row.left) or HONORIFIC.search(row.right)
    if is_surname and not has_title and random.random() < POLITE_SHARE:
        return Name(f"{common.title} {name.english}", f"{name.japanese}{POLITE}")
    return name
