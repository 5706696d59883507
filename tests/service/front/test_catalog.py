from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from service.base.errors import (
    ArtifactRefused,
    InvalidFields,
    ModelRequired,
    RequestError,
    TargetRequired,
    UnknownModel,
    UnsupportedLanguagePair,
)
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.scheduler import Sequence
from service.front.assembly import catalog_of
from service.front.catalog import Catalog
from service.pool.loader import Loader
from service.tasks.translation.translator import Translator
from service.text.languages import Direction
from tests.service.in_process import LoopThread, load_in_process
from tests.service.text.test_languages import CODES as LANGUAGE_CODES
from tests.service.tiny_artifacts import TinyTranslator, language
from tests.service.tiny_classifier import TinyClassifier


@pytest.fixture(scope="module")
def root(
    tmp_path_factory: pytest.TempPathFactory, tiny_translator: TinyTranslator, tiny_classifier: TinyClassifier
) -> Path:
    """Two translators, of which one serves two directions, and two classifiers."""
    root = tmp_path_factory.mktemp("several")
    both = [language("en"), language("de")]
    tiny_translator.save(root / "a", name="en-de-en", sources=both, targets=both)
    tiny_translator.save(root / "b", name="en-fr")
    tiny_classifier.save(root / "c", name="reviews")
    tiny_classifier.save(root / "d", name="tweets")
    return root


@pytest.fixture(scope="module")
def models(root: Path) -> Catalog:
    """None is started."""
    return load_in_process(Settings(artifacts=root, provider="cpu", threads=1), Metrics())


def route(models: Catalog, name: str | None, source: str | None, target: str | None) -> tuple[Translator, Direction]:
    """The only leg."""
    (leg,) = models.directions(name).route(source, target, pivot=False)
    return leg


@pytest.mark.parametrize(
    ("wanted", "name", "direction"),
    [
        ((None, "en", "fr"), "en-fr", ("en", "fr")),
        ((None, None, "fr"), "en-fr", ("en", "fr")),
        (("en-fr", None, None), "en-fr", ("en", "fr")),
        ((None, "de", None), "en-de-en", ("de", "en")),
        (("en-de-en", "en", None), "en-de-en", ("en", "de")),
    ],
)
def test_a_request_may_leave_out_what_only_one_model_fits(
    models: Catalog, wanted: tuple[str | None, str | None, str | None], name: str, direction: tuple[str, str]
) -> None:
    translator, found = route(models, *wanted)
    assert translator.manifest.name == name
    assert (found.source, found.target) == direction


def test_of_several_that_fit_the_first_that_the_settings_name_answers(root: Path) -> None:
    named = load_in_process(Settings(artifacts=root, provider="cpu", models="tweets, en-fr,en-de-en"), Metrics())
    assert [model.manifest.name for model in named] == ["en-fr", "en-de-en", "tweets"]
    assert route(named, None, "en", None)[0].manifest.name == "en-fr"
    assert route(named, None, None, "de")[0].manifest.name == "en-de-en"
    assert named.embedder(None, None).manifest.name == "tweets"
    with pytest.raises(ArtifactRefused, match=r"reviewz; .*: en-de-en, en-fr, reviews, tweets$"):
        load_in_process(Settings(artifacts=root, provider="cpu", models="reviewz"), Metrics())


@pytest.mark.process
def test_a_server_that_begins_later_reads_no_file_that_has_changed_meanwhile(
    tmp_path: Path, tiny_translator: TinyTranslator
) -> None:
    saved = tiny_translator.save(tmp_path / "a", name="en-fr")
    settings = Settings(artifacts=tmp_path, provider="cpu", workers=1)
    loader = Loader(settings)
    try:
        loaded = loader.wait()
    finally:
        loader.end()
    with (saved / "tokenizer.json").open("a") as file:
        file.write(" ")
    assert catalog_of(loaded, settings, Metrics()).translators[0].manifest.name == "en-fr"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, tiny_translator: TinyTranslator) -> Path:
    """A translator of many languages, two for one direction of its, and one that reads any language."""
    root = tmp_path_factory.mktemp("many")
    languages = [language(code) for code in LANGUAGE_CODES["NLLB-200"]]
    tiny_translator.save(root / "a", name="all", sources=languages, targets=languages)
    tiny_translator.save(root / "b", name="quick", sources=[language("eng")], targets=[language("fra")])
    tiny_translator.save(root / "c", name="good", sources=[language("en")], targets=[language("fr")])
    tiny_translator.save(root / "d", name="any-ltg", sources=[language("mul")], targets=[language("ltg")])
    return root


def loaded(root: Path, **settings: object) -> Catalog:
    """Not started."""
    return load_in_process(Settings(artifacts=root, provider="cpu", threads=1, **settings), Metrics())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("order", "wanted", "name", "direction"),
    [
        ("", ("en", "fr"), "all", ("en", "fr")),
        ("", ("eng_Latn", "fr-CA"), "all", ("en", "fr")),
        ("quick,good,all", ("en", "fr"), "quick", ("en", "fr")),
        ("all,quick", ("en", "fr"), "all", ("en", "fr")),
        ("", ("fr", "en-GB"), "all", ("fr", "en")),
        ("", ("zh_TW", "zh-CN"), "all", ("zh-Hant", "zh")),
        ("any-ltg,all", ("fr", "ltg"), "all", ("fr", "ltg")),
        ("", ("vro", "ltg"), "any-ltg", ("vro", "ltg")),
        ("any-ltg", (None, "ltg"), "any-ltg", ("mul", "ltg")),
        ("all", ("no", "fr"), "all", ("nb", "fr")),
    ],
)
def test_of_several_models_for_a_direction_the_first_in_order_answers(
    many: Path, order: str, wanted: tuple[str | None, str], name: str, direction: tuple[str, str]
) -> None:
    translator, found = route(loaded(many, models=order), None, *wanted)
    assert translator.manifest.name == name
    assert (found.source, found.target) == direction


def test_messages_count_the_directions_of_a_model_of_many_languages(many: Path) -> None:
    models = loaded(many)
    all_of_them = "202 languages to 202 languages (all, see /models)"
    with pytest.raises(TargetRequired) as refused:
        route(models, None, None, None)
    assert str(refused.value).endswith(f": {all_of_them}, mul-ltg (any-ltg), en-fr (good), en-fr (quick)")
    with pytest.raises(TargetRequired, match=r": en to 202 languages \(all, see /models\)$"):
        route(models, "all", "en", None)
    with pytest.raises(UnsupportedLanguagePair, match=r"all .*from xx to fr; .*: 202 languages to 202"):
        route(models, "all", "xx", "fr")
    with pytest.raises(ModelRequired, match=r": 202 languages \(all\), mul \(any-ltg\), en \(good\)"):
        models.embedder(None, None)
    assert models.embedder(None, "zho_Hant").manifest.name == "all"


def test_the_first_model_in_order_is_asked_for_its_direction_where_it_has_several(many: Path) -> None:
    ordered = loaded(many, models="good,all")
    assert route(ordered, None, None, None)[0].manifest.name == "good"
    with pytest.raises(TargetRequired):
        route(loaded(many, models="all,good"), None, None, None)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ((None, "en", None), TargetRequired, r": en-de \(en-de-en\), en-fr \(en-fr\)$"),
        ((None, "xx", None), UnsupportedLanguagePair, r"from xx to any language; .*: .*en-fr \(en-fr\)"),
        (("en-fr", None, "de"), UnsupportedLanguagePair, r"from any language to de; .*: en-fr \(en-fr\)$"),
        (("reviews", None, None), UnknownModel, r"'reviews' can translate .*: en-de-en, en-fr"),
    ],
)
def test_where_not_one_fits_those_that_can_are_named(
    models: Catalog, wanted: tuple[str | None, str | None, str | None], error: type[RequestError], message: str
) -> None:
    with pytest.raises(error, match=message):
        route(models, *wanted)


def test_a_model_made_for_embeddings_comes_before_other_encoders(models: Catalog) -> None:
    first, *others = models.embedders
    manifest = first.manifest.model_copy(update={"task": "embedding", "name": "vectors", "sources": ()})
    with_one = Catalog([], [], [*others, replace(first, manifest=manifest)])
    assert with_one.embedder(None, None).manifest.name == "vectors"
    assert with_one.embedder(None, "en").manifest.name == "en-fr"


def test_the_gauges_show_the_queue_of_every_task(models: Catalog) -> None:
    translator, classifier = models.translators[0], models.classifiers[0]
    pools = [translator.beam, translator.greedy, classifier.pool, models.embedders[0].pool, translator.attention_pool]
    (worker,) = models._workers
    assert isinstance(worker, LoopThread)
    engines = [worker.loop._served[pool.name].engine for pool in pools]
    for n_waiting, engine in enumerate(engines, start=1):
        assert engine is not None
        engine.scheduler.add([Sequence([1], None) for _ in range(n_waiting)])
    waiting = Counter[str]()
    for state in models.states():
        waiting[state.task] += state.waiting
    assert waiting == {"translation": 1 + 2, "classification": 3, "embedding": 4, "attention": 5}
    for engine in engines:
        assert engine is not None
        engine.scheduler.waiting.clear()


def test_an_unknown_model_names_those_that_can(models: Catalog) -> None:
    with pytest.raises(UnknownModel, match=r"'en-fr' can classify .*: reviews, tweets"):
        models.classifier("en-fr")
    with pytest.raises(UnknownModel, match="'' can classify"):
        models.classifier("")


def test_a_classifier_is_named_or_the_first_one(models: Catalog) -> None:
    assert models.classifier("tweets").manifest.name == "tweets"
    assert models.classifier(None).manifest.name == "reviews"


def test_an_encoder_is_named_or_the_first_one_that_reads_the_language(models: Catalog) -> None:
    assert models.embedder("tweets", None).manifest.name == "tweets"
    assert models.embedder(None, "de").manifest.name == "en-de-en"
    assert models.embedder("en-fr", "en").manifest.name == "en-fr"
    assert models.embedder(None, "en").manifest.name == "en-de-en"
    with pytest.raises(ModelRequired, match=r": .*, reviews, tweets$"):
        models.embedder(None, None)
    with pytest.raises(InvalidFields, match=r"`source` .* en; available: none$"):
        models.embedder("tweets", "en")


def test_without_any_model_for_a_task_the_answer_says_so(models: Catalog) -> None:
    with pytest.raises(UnknownModel, match=r"can classify .*: none$"):
        Catalog(models.translators, []).classifier(None)


def test_readiness_names_every_model_that_is_not(models: Catalog) -> None:
    reason = models.unready_reason() or ""
    assert reason.split("; ") == [f"{name}: starting" for name in ("en-de-en", "en-fr", "reviews", "tweets")]
