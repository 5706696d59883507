from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization import yaml_messages
from service.documents.localization.splicing import is_translatable
from tests.service.documents.translating import Opened, translated

RAILS = r"""# the dogs: "of the app"
en: # here
  hello: "Hello, \"you\"!"   # a comment
  plain: it's plain
  anchor: &dog  one dog
  alias: *dog
  "quoted" : 'it''s # here'
  yes: no
  day: 2027-01-01
  n: 1
  nothing:
  flow: {a: one dog, b: [two, 'three cats', 4]}
  lines: |
    The dog
      runs.

    The end.

  folded: >-
    The dog runs
    here.

    The end.
  long: the dog
    runs here
  tagged: !ruby/symbol dog
---
second: text
"""


def to(target: str, source: str = "en") -> ReadOptions:
    return ReadOptions(source=source, target=target)


def test_texts_that_languages_share_stand_beside_them() -> None:
    data = b"defaults: &d\n  a: one dog\nen:\n  <<: *d\n  b: two cats\nfr:\n  <<: *d\n  b: deux chats\n"
    expected = data.replace(b"\nen:", b"\nde:").replace(b"one dog", b"ONE DOG").replace(b"two cats", b"TWO CATS")
    assert translated(Opened(yaml_messages.rewrite, data, to("de"))) == expected


def test_strings_are_translated_and_everything_else_stays() -> None:
    new = translated(Opened(yaml_messages.rewrite, RAILS.encode(), to("de"))).decode()
    expected = RAILS.replace("en: #", "de: #")
    for text in (
        r"Hello, \"you\"!",
        "it's plain",
        "one dog",
        "it''s # here",
        "three cats",
        "The dog",
        "runs.",
        "The end.",
    ):
        expected = expected.replace(text, text.upper())
    expected = expected.replace("[two", "[TWO").replace("DOG runs\n    here.", "DOG RUNS\n    HERE.")
    expected = expected.replace("the dog\n    runs here", "THE DOG RUNS HERE").replace("second: text", "second: TEXT")
    assert new == expected


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a: dog", "a: b", "a: 'a: b'"),
        ("a: dog", "it's: '", "a: 'it''s: '''"),
        ("a: dog", "no", "a: 'no'"),
        ("a: dog", "- dog", "a: '- dog'"),
        ("a: dog", "x, y", "a: x, y"),
        ("[dog]", "x, y", "['x, y']"),
        ("a: dog", "a\nb", 'a: "a\\nb"'),
        ("a: 'dog'", "it's", "a: 'it''s'"),
        ('a: "dog"', '"\\', 'a: "\\"\\\\"'),
        ("a: dog", "&a b", "a: '&a b'"),
        ("- dog", "a: b", "- 'a: b'"),
        ("a: |\r  dog\rb: cat", "new", "a: |\r  dog\rb: new"),
        ("a: |2\n\x85  dog\nb: cat", "new", "a: |2\n\x85  dog\nb: new"),
        ("a: |-\r\n  dog\r\n", "x\n y", "a: |-\r\n  x\r\n   y\r\n"),
    ],
)
def test_a_translation_is_quoted_where_it_must_be(before: str, text: str, after: str) -> None:
    assert Opened(yaml_messages.rewrite, before.encode(), to("de")).write([text]).decode() == after


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_forms_of_a_plural_are_those_of_the_target(line_end: str) -> None:
    data = 'en:\n  dogs:\n    # counted\n    one: One dog\n    other: "%{count} dogs"\n  x: y\n'.replace("\n", line_end)
    new = translated(Opened(yaml_messages.rewrite, data.encode(), to("ru"))).decode().replace(line_end, "\n")
    categories = ("one", "few", "many", "other")
    forms = "".join(f'    {category}: "%{{count}} DOGS"\n' for category in categories)
    assert new == f"ru:\n  dogs:\n    # counted\n{forms}  x: Y\n"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"))
VALUES = st.recursive(
    st.integers() | TEXTS | st.sampled_from(["a dog", "a\nb", " x", "a\n\n  b\nc ", "no", "1", 'it\'s: "x"', "a # b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(VALUES, st.sampled_from([None, "|", ">", "'", '"']), st.booleans(), st.booleans())
def test_a_translation_is_read_as_it_is_and_nothing_else_changes(
    value: Any, style: str | None, is_flow: bool, is_wide: bool
) -> None:
    data = yaml.safe_dump(
        {"k": value},
        default_style=style,
        default_flow_style=is_flow,
        width=10**6 if is_wide else 20,
        allow_unicode=True,
    ).encode()
    contents = Opened(yaml_messages.rewrite, data, to("de"))
    assert contents.write(contents.texts) == data
    new = [f'{i}: it\'s # "new"' for i in range(len(contents.texts))]
    written = yaml.safe_load(contents.write(new))
    remaining = iter(new)

    def expected(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: expected(inner) for name, inner in tree.items()}
        if isinstance(tree, list):
            return [expected(inner) for inner in tree]
        return next(remaining) if isinstance(tree, str) and is_translatable(tree) else tree

    def stripped(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: stripped(inner) for name, inner in tree.items()}
        return [*map(stripped, tree)] if isinstance(tree, list) else tree.strip() if isinstance(tree, str) else tree

    assert stripped(written) == stripped(expected(yaml.safe_load(data)))


BOMB = "a: &a [x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{one}'] * 5)}]\n" for one, after in pairwise("abcdefghi")
)


def test_aliases_are_not_followed() -> None:
    contents = Opened(yaml_messages.rewrite, BOMB.encode(), to("de"))
    assert contents.texts == ["x"] * 5


@pytest.mark.parametrize(
    "data", [b"[" * 20_000, b"- " * 20_000, b"{a: " * 20_000, b"a: 'b", b"a: b: c", b"\t- x", b"caf\xe9", b"a: *b\n&"]
)
def test_a_file_that_is_not_yaml_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(yaml_messages.rewrite, data)


@pytest.mark.parametrize("data", [b"", b"# comment", b"---\n---\n", b"!!python/object/apply:os.system [ls]"])
def test_a_file_without_texts_stays(data: bytes) -> None:
    contents = Opened(yaml_messages.rewrite, data, to("de"))
    assert contents.write(["X"] * len(contents.texts)).lower() == data.lower().replace(b"[ls]", b"[x]")


def test_a_block_has_no_line_end_that_yaml_alone_knows() -> None:
    data = b"a: |\n  a dog\nb: a cat\n"
    written = Opened(yaml_messages.rewrite, data).write(["a\u2028dog\0\x85 \tc", "a cat"])
    assert written.decode() == "a: |\n  a\n  dog\n   \tc\nb: a cat\n"
    assert Opened(yaml_messages.rewrite, written).texts == ["a\ndog\n \tc", "a cat"]
