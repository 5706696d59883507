from benchmarks.multilingual import CONFIG, rows_of, separate
from model.config import load_config


def test_each_language_has_its_own_corpora_and_its_share_of_the_steps() -> None:
    joint = load_config(CONFIG)
    alone = separate(joint)
    assert [config.name for config in alone] == ["translate-en-fr", "translate-en-de", "translate-en-ru"]
    assert sum(config.training.max_steps for config in alone) == joint.training.max_steps
    for use in ("train", "test"):
        files = [source.file for config in alone for source in getattr(config.data, use)]
        assert sorted(files) == sorted(source.file for source in getattr(joint.data, use))
        for config in alone:
            assert all(
                source.file.endswith(f".en-{config.model.target}.tsv.xz") for source in getattr(config.data, use)
            )
            assert not any(source.prefix for source in getattr(config.data, use))


def test_models_for_one_language_are_one_row() -> None:
    common = {"parameters": 1_000_000, "steps": 100, "tokens": 2e6, "target_tokens": 30, "sentences": 10}
    records = [
        common | {"joint": True, "scores": {"t.en-fr": 1.0, "t.en-de": 2.0}, "steps": 200, "target_tokens": 40},
        common | {"joint": False, "scores": {"t.en-fr": 3.0}},
        common | {"joint": False, "scores": {"t.en-de": 4.0}},
    ]
    assert rows_of(records)[1:] == [
        ["one for each language", "2.00 M", "200", "4.0", "3.0", "3.0", "4.0"],
        ["one for all", "1.00 M", "200", "2.0", "4.0", "1.0", "2.0"],
    ]
