import pytest

from service.memories.spans import adapted


@pytest.mark.parametrize(
    ("text", "source", "target", "languages", "expected"),
    [
        ("Open {title}.", "Open {name}.", "Ouvrez {name}.", ("en", "fr"), "Ouvrez {title}."),
        (
            "It costs $99.90 in 2025.",
            "It costs $1,250.50 in 2024.",
            "Cela coûte 1 250,50 $ en 2024.",
            ("en", "fr"),
            "Cela coûte 99,90\xa0$ en 2025.",
        ),
        (
            "Meet at 10:30 (see https://a.example/c).",
            "Meet at 9:15 (see http://x.example).",
            "Rendez-vous à 9:15 (voir http://x.example).",
            ("en", "fr"),
            "Rendez-vous à 10:30 (voir https://a.example/c).",
        ),
        (
            "2024年5月6日に会いましょう。",
            "2023年1月2日に会いましょう。",
            "Let's meet on January 2, 2023.",
            ("ja", "en"),
            "Let's meet on May 6, 2024.",
        ),
        ("You have 4 files.", "You have 3 files.", "Файла: 3", ("en", "ru"), "Файла: 4"),
        ("Save %d of %d.", "Save {0} of {1}.", "{0} von {1} sichern.", ("en", "de"), "%d von %d sichern."),
        (
            "Save %2$d of %1$d.",
            "Save {0} of {1}.",
            "Sur {1}, enregistrer {0}.",
            ("en", "fr"),
            "Sur %1$d, enregistrer %2$d.",
        ),
        (
            "Save %d of %s by 5.",
            "Save %d of %s by 3.",
            "Jusqu'à 3, %2$s : %1$d.",
            ("en", "fr"),
            "Jusqu'à 5, %2$s : %1$d.",
        ),
        ("<b>Red</b> car", "<i>Red</i> car", "Voiture <i>rouge</i>", ("en", "fr"), "Voiture <b>rouge</b>"),
    ],
)
def test_kept_spans_are_put_into_a_stored_translation(
    text: str, source: str, target: str, languages: tuple[str, str], expected: str
) -> None:
    assert adapted(text, source, target, languages) == expected


@pytest.mark.parametrize(
    ("text", "source", "target", "languages"),
    [
        ("You have 5 files.", "You have 3 files.", "Файла: 3", ("en", "ru")),  # other words in Russian
        ("It has 4 doors.", "It has 2 doors.", "Elle a deux portes.", ("en", "fr")),  # a word
        ("Open {title} now.", "Open {name}.", "Ouvrez {name}.", ("en", "fr")),
        ("Open {title}.", "Open {name}.", "Ouvrez.", ("en", "fr")),
        ("From 7 to 9.", "From 5 to 5.", "De 5 à 5.", ("en", "fr")),  # which 5 becomes 7?
        ("Page 70", "Page 50", "Page 50 (50 %)", ("en", "fr")),
        ("Save %d of %d files.", "Save {0} of {1} files.", "Sur {1} fichiers, enregistrer {0}.", ("en", "fr")),
        ("%-5d%% of {:.2f} files", "{0} of {1} files", "{1} files: {0}", ("en", "fr")),
        ("%s of %d files", "%s of 5 files", "5 fichiers de %s", ("en", "fr")),
        ("%s of %d files", "%s of 5 files", "%1$s : 5 fichiers", ("en", "fr")),
    ],
)
def test_a_stored_translation_is_no_answer_where_a_changed_span_has_no_sure_place(
    text: str, source: str, target: str, languages: tuple[str, str]
) -> None:
    assert adapted(text, source, target, languages) is None
