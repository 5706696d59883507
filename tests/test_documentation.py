"""What the pages promise: their tables are up to date, their links lead somewhere, their paragraphs are short, and the
commands and files that they name exist."""

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import BaseModel

from docs.generate import PAGES, PLACE, ROOT, TABLES, filled
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.http.documents import DocumentForm
from service.http.glossaries import GlossaryForm
from service.http.memories import MemoryForm
from service.schemas.glossaries import DictionaryRequest, GlossaryRequest, GlossaryUpdate
from service.schemas.live import LiveUpdate
from service.schemas.memories import MemoryRequest, SegmentRequest, SegmentsRequest
from service.schemas.requests import (
    AttentionSelection,
    ClassifyRequest,
    DetectRequest,
    EmbedRequest,
    GlossaryTerm,
    RerankRequest,
    TranslateRequest,
)
from tests.test_worked_example import NEW_FILES

MOST_CHARACTERS = 600
HISTORY = {"CHANGELOG.md", "measurements.md"}
"""They name what was, too."""
SCHEMAS = [
    TranslateRequest,
    LiveUpdate,
    DetectRequest,
    ClassifyRequest,
    RerankRequest,
    EmbedRequest,
    AttentionSelection,
    DocumentForm,
    GlossaryRequest,
    GlossaryUpdate,
    GlossaryForm,
    MemoryRequest,
    SegmentsRequest,
    SegmentRequest,
    MemoryForm,
    GlossaryTerm,
    DictionaryRequest,
]
OF_TODAY = [page for page in PAGES if page.name not in HISTORY]
MARKDOWN = MarkdownIt("commonmark").enable("table")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
pages_of_today = pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: page.name)


@pages
def test_generated_tables_are_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == filled(page.read_text(encoding="utf-8")), "make docs writes them"


def test_every_generated_table_is_in_a_page() -> None:
    assert {name for page in PAGES for name, _ in PLACE.findall(page.read_text(encoding="utf-8"))} == TABLES.keys()


@pages
def test_no_paragraph_is_long(page: Path) -> None:
    paragraphs = [token.content for token in tokens(page) if token.type == "inline"]
    assert [paragraph for paragraph in paragraphs if len(paragraph) > MOST_CHARACTERS] == []


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("benchmarks/**/*.md")], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    lost = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
    assert lost == []


@pages_of_today
def test_make_has_the_targets_that_pages_name(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", "\n".join(commands(page)), re.MULTILINE)) - targets == set()


@pages_of_today
def test_python_has_the_commands_that_pages_name(page: Path) -> None:
    named = set(re.findall(r"python -m ([\w.]+)(?: ([a-z][\w-]*)(?![\w/.]))?", "\n".join(commands(page))))
    assert [name for name in sorted(named) if not has_command(*name)] == []


@pages_of_today
def test_files_that_pages_name_exist(page: Path) -> None:
    packages = "benchmarks|docker|docs|export|manifest|model|requirements|service|tests"
    named = set(re.findall(rf"(?<![\w./-])(?:{packages})/[\w./-]*\w", "\n".join(commands(page))))
    assert [path for path in sorted(named - NEW_FILES) if not (ROOT / path).exists()] == []


@pages_of_today
def test_tests_and_settings_that_pages_name_exist(page: Path) -> None:
    named = [*codes(page)]
    tests = {code for code in named if re.fullmatch(r"test_\w+", code)}
    settings = {code for code in named if re.fullmatch(r"ATTEND_[A-Z_]+", code)}
    assert tests - all_tests() == set()
    assert settings - {f"ATTEND_{name.upper()}" for name in Settings.model_fields} == set()


def test_each_attack_has_a_test_that_shows_what_stops_it() -> None:
    _, *tables = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").split("| Shown by |\n|---|---|---|\n")
    rows = [row for table in tables for row in table.partition("\n\n")[0].splitlines()]
    assert len(rows) > 40
    assert [row for row in rows if not re.search(r"\| `test_\w+`[^|]* \|$", row)] == []


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_field_of_a_request_is_described(schema: type[BaseModel]) -> None:
    described = set(codes(ROOT / "docs" / "api.md"))
    assert schema.model_fields.keys() - described == set()
    assert [name for name, field in schema.model_fields.items() if not field.description] == []


def test_names_in_the_vocabulary_are_names_in_the_code() -> None:
    files = (path for package in ("export", "manifest", "model", "service") for path in (ROOT / package).rglob("*.py"))
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in files)))
    words |= {f"ATTEND_{name.upper()}" for name in Settings.model_fields}
    named = {code for code in codes(ROOT / "docs" / "vocabulary.md") if not (ROOT / code).exists()}
    assert [code for code in sorted(named) if not words.issuperset(re.findall(r"\w+", code))] == []


def test_every_metric_is_described() -> None:
    metrics = Metrics()
    metrics.watch(list, bool)
    families = [*metrics.registry.collect()]
    counted = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    described = {code for code in codes(ROOT / "docs" / "operate.md") if code.startswith("attend_")}
    assert described == counted


@cache
def all_tests() -> set[str]:
    """The names of all tests."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)}


def tokens(page: Path) -> Iterator[Token]:
    yield from MARKDOWN.parse(page.read_text(encoding="utf-8"))


def inlines(page: Path) -> Iterator[Token]:
    for token in tokens(page):
        yield from token.children or ()


def links(page: Path) -> Iterator[str]:
    """Of links and pictures, those that stay in the repository."""
    for token in inlines(page):
        target = token.attrGet({"link_open": "href", "image": "src"}.get(token.type, ""))
        if target is not None and "://" not in str(target):
            yield str(target)


def codes(page: Path) -> Iterator[str]:
    return (token.content for token in inlines(page) if token.type == "code_inline")


def commands(page: Path) -> Iterator[str]:
    """What stands in blocks and spans of code."""
    yield from codes(page)
    yield from (token.content for token in tokens(page) if token.type == "fence")


def anchors(page: Path) -> set[str]:
    """Of the headings of a page, as GitHub makes them."""
    found = list(tokens(page))
    headings = [after.content for token, after in pairwise(found) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def has_command(module: str, command: str) -> bool:
    """Whether `python -m MODULE COMMAND` is there; not every module has commands."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    if spec.submodule_search_locations is None or ROOT not in Path(spec.origin).parents:
        return True
    main = Path(spec.origin).with_name("__main__.py")
    if not main.exists():
        return False
    defined = re.findall(r'^@app\.command\((?:"([\w-]+)")?.*\)\ndef (\w+)', main.read_text("utf-8"), re.MULTILINE)
    names = {name or function.replace("_", "-") for name, function in defined}
    return not command or len(names) < 2 or command in names
