"""The codes of errors: each is unique and documented, and everything that the native interface raises has one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.base import errors
from service.base.errors import ClientGone, RequestError
from service.http.problems import codes

ROOT = Path(__file__).parents[3]
CODES = {
    "malformed_body": 400,
    "key_missing": 401,
    "key_wrong": 403,
    "unknown_model": 404,
    "unknown_glossary": 404,
    "unknown_document": 404,
    "unknown_path": 404,
    "method_not_allowed": 405,
    "body_timeout": 408,
    "reload_refused": 409,
    "document_not_ready": 409,
    "content_too_large": 413,
    "text_too_long": 413,
    "unsupported_media_type": 415,
    "unsupported_file_type": 415,
    "invalid_fields": 422,
    "target_required": 422,
    "source_required": 422,
    "model_required": 422,
    "unsupported_language_pair": 422,
    "language_not_detected": 422,
    "unsupported_option": 422,
    "empty_text": 422,
    "too_many_texts": 422,
    "limit_exceeded": 422,
    "invalid_glossary": 422,
    "glossary_mismatch": 422,
    "invalid_document": 422,
    "document_failed": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "queue_full": 503,
    "starting": 503,
    "draining": 503,
    "broken": 503,
    "not_stored": 503,
    "not_ready": 503,
    "deadline_passed": 504,
}
"""Clients compare these: none is ever renamed, and none gets another status."""


def test_codes_stay_what_they_are() -> None:
    assert sorted(codes()) == sorted(CODES.items())


def test_codes_are_snake_case() -> None:
    assert [code for code in CODES if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_the_page_of_errors_has_each_code_under_its_status() -> None:
    described, status = [], 0
    for line in (ROOT / "docs" / "errors.md").read_text("utf-8").splitlines():
        if found := re.match(r"## (\d+) ", line):
            status = int(found[1])
        elif found := re.fullmatch(r"### `(\w+)`", line):
            described.append((found[1], status))
    assert sorted(described) == sorted(CODES.items())


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    classes = {name: one for name, one in vars(errors).items() if isinstance(one, type)}
    own = {name: one for name, one in classes.items() if one.__module__ == errors.__name__}
    assert {*re.findall(r"── (\w+)", errors.__doc__)} == own.keys() - {"AttendError"}
    shown = re.findall(r"── (\w+) +(\d+)  (\w+)$", errors.__doc__, re.MULTILINE)
    coded = {name: one for name, one in own.items() if "code" in vars(one)}
    assert sorted(shown) == sorted((name, str(one.status), one.code) for name, one in coded.items())


def raised() -> Iterator[tuple[str, str]]:
    """Yield the room and the class of each error that a call in `service` makes."""
    for path in sorted((ROOT / "service").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in vars(errors):
                yield path.relative_to(ROOT / "service").parts[0], node.func.id


def test_what_is_raised_outside_of_dialects_has_a_code() -> None:
    made = {vars(errors)[name] for room, name in raised() if room != "dialects"}
    answered = {error for error in made if isinstance(error, type) and issubclass(error, RequestError)}
    assert len(answered) > 30
    assert [error for error in answered - {ClientGone} if not hasattr(error, "code")] == []


@pytest.mark.parametrize(
    ("n", "detail"), [(1, "`a.0` must be b"), (2, "2 fields are invalid; the first: `a.0` must be b")]
)
def test_invalid_fields_are_named(n: int, detail: str) -> None:
    assert str(errors.InvalidFields([(("a", 0), "must be b")] * n)) == detail
