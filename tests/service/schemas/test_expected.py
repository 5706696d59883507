"""What is said of a model by kind of text, from its scores."""

from service.schemas.answers import expected


def test_kinds_of_text_are_called_by_their_scores_the_best_first() -> None:
    kinds = {"news": 17.3, "interface": 30.0, "help_pages": 20.0, "chat": 45.1, "law": 29.99}
    assert expected({"kinds": kinds, "ntrex128.en-fr": {"bleu": 17.3}}) == {
        "good": ["chat", "interface"],
        "fair": ["law", "help pages"],
        "rough": ["news"],
    }


def test_of_a_model_without_kinds_nothing_is_said() -> None:
    assert expected({"ntrex128.en-fr": {"bleu": 17.3}}) is None
    assert expected({"kinds": {}}) is None
