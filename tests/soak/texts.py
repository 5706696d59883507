"""Texts of random words that the models know."""

from random import Random

from tests.service.tiny_artifacts import PUNCTUATION, WORDS

NAN_WORD = "beach"
"""The word for which the tiny models compute no numbers."""
TINY_WORDS = [word for word in WORDS if word not in PUNCTUATION and word != NAN_WORD]
REAL_WORDS = """
the a small old red young tall dog cat man woman child horse bird runs sleeps sings plays waits looks works in on near
under behind house garden street river park school kitchen today tomorrow quickly slowly and but
""".split()  # noqa: SIM905


class Texts:
    """Makes texts, of these words."""

    def __init__(self, random: Random, words: list[str]) -> None:
        self._random = random
        self._words = words

    def sentence(self, most_words: int = 12) -> str:
        words = self._random.choices(self._words, k=self._random.randint(1, most_words))
        return f"{' '.join(words)}{self._random.choice('.!?')}"

    def text(self, most_sentences: int = 3) -> str:
        return " ".join(self.sentence() for _ in range(self._random.randint(1, most_sentences)))

    def texts(self, most: int = 6) -> list[str]:
        return [self.text() for _ in range(self._random.randint(1, most))]

    def html(self) -> str:
        words = self.sentence().split(" ")
        bold = self._random.randrange(len(words))
        words[bold] = f"<b>{words[bold]}</b>"
        return f"<p>{' '.join(words)}</p><p>{self.sentence()}</p>"

    def with_nan(self) -> str:
        words = self.sentence(8).split(" ")
        words.insert(self._random.randrange(len(words)), NAN_WORD)
        return " ".join(words)
