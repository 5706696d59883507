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
BY_STATUS = {
    400: ["malformed_body"],
    401: ["key_missing"],
    403: ["key_wrong", "route_forbidden", "not_owner", "cross_site"],
    404: ["unknown_model", "unknown_glossary", "unknown_memory", "unknown_document", "unknown_path"],
    405: ["method_not_allowed"],
    408: ["body_timeout", "socket_idle"],
    409: ["reload_refused", "document_not_ready"],
    413: ["content_too_large", "text_too_long"],
    415: ["unsupported_media_type", "unsupported_file_type"],
    422: [
        "invalid_fields", "target_required", "source_required", "model_required", "unsupported_language_pair",
        "language_not_detected", "unsupported_option", "empty_text", "too_many_texts", "limit_exceeded",
        "invalid_glossary", "glossary_mismatch", "invalid_memory", "memory_mismatch", "invalid_document",
        "document_failed", "idempotency_key_reused",
    ],
    429: ["rate_limited", "quota_exceeded"],
    500: ["internal_error"],
    503: ["queue_full", "too_many_sockets", "starting", "draining", "broken", "not_stored", "not_ready"],
    504: ["deadline_passed"],
}  # fmt: skip
CODES = {code: status for status, codes in BY_STATUS.items() for code in codes}
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


def test_an_error_raised_outside_of_dialects_has_a_code() -> None:
    made = {vars(errors)[name] for room, name in raised() if room != "dialects"}
    answered = {error for error in made if isinstance(error, type) and issubclass(error, RequestError)}
    assert len(answered) > 30
    assert [error for error in answered - {ClientGone} if not hasattr(error, "code")] == []


@pytest.mark.parametrize(
    ("n", "detail"), [(1, "`a.0` must be b"), (2, "2 fields are invalid; the first: `a.0` must be b")]
)
def test_invalid_fields_are_named(n: int, detail: str) -> None:
    assert str(errors.InvalidFields([(("a", 0), "must be b")] * n)) == detail
