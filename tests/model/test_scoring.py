from model.evaluation.scoring import score_translations


def test_bleu_into_japanese_is_of_characters_and_says_so() -> None:
    scores, signatures = score_translations(["犬が走っている。"], ["犬が走っていた。"], "ja")
    assert list(scores) == list(signatures) == ["bleu_of_characters", "chrf"]
    assert "tok:char" in signatures["bleu_of_characters"]
    assert scores["bleu_of_characters"] > 50, "of words, of which there is one, nothing is right"


def test_bleu_into_other_languages_is_of_words() -> None:
    scores, signatures = score_translations(["Un chien brun court vite."], ["Un chien brun court vite."], "fr")
    assert scores == {"bleu": 100.0, "chrf": 100.0}
    assert "tok:13a" in signatures["bleu"]
