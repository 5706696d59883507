import pytest

from service.text.language_marks import MarkedLanguages


@pytest.mark.parametrize(
    ("source", "target", "mark", "expected"),
    [
        ("en", "de", "en", "de"),
        ("en", "de", "EN", "de"),
        ("en-GB", "de", "en-US", "de-DE"),
        ("en", "de", "en_US", "de_DE"),
        ("eng_Latn", "fra_Latn", "en", "fr"),
        ("en", "ja", " en-US-x-mine ", "ja-JP"),
        ("en", "zh-Hant", "en", "zh-Hant"),
        ("en", "zh-Hant", "en-US", "zh-TW"),
        ("en", "sr-Latn", "en-US", "sr-Latn-RS"),
        ("en", "de", "fr", "fr"),
        ("en", "de", "", ""),
        ("en", "de", "english", "english"),
        ("en", "de", "eng-ine", "eng-ine"),
        ("fr", "fr-CA", "fr", "fr"),
        ("en-US", "en-GB", "en-US", "en-US"),
    ],
)
def test_a_mark_of_the_source_becomes_one_of_the_target(source: str, target: str, mark: str, expected: str) -> None:
    assert MarkedLanguages(source, target).translated(mark) == expected
