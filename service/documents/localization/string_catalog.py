"""String catalogs of Xcode (.xcstrings): JSON with a program's texts in all of its languages.

A translation is put beside the text in the language of the file, to be reviewed. Names and comments stay.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.localization.json_messages import parse_json
from service.documents.localization.plurals import plural_texts
from service.documents.localization.printf_order import in_order
from service.documents.localization.splicing import Splice, is_translatable, line_break_before, rewrite_spliced
from service.documents.localization.trees import Mapping, Member, Node
from service.text.languages import canonical
from service.text.spans import Span


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite a string catalog; with `options.only_missing`, the texts that have no translation. Raises
    InvalidDocument: the file is not text, or no string catalog."""
    text, encoding = decode(data)
    root = parse_json(text)
    try:
        catalog = json.loads(text)
        strings = _find(root, "strings")
        splices: list[Splice] = []
        for member in _members(strings.node if strings else None):
            splices += _splices(text, member, catalog["strings"][member.name], catalog["sourceLanguage"], options)
    except (AttributeError, KeyError, TypeError, RecursionError):
        raise InvalidDocument("The file is not a string catalog of Xcode") from None
    return rewrite_spliced(data, text, encoding, splices, "text")


def _splices(text: str, member: Member, entry: dict[str, Any], language: str, options: ReadOptions) -> Iterator[Splice]:
    localizations = entry.get("localizations", {})
    target = options.target or ""
    target = next((name for name in localizations if canonical(name) == canonical(target) is not None), target)
    is_done = options.only_missing and _is_translated(localizations.get(target, {}))
    source = localizations.get(language) or {"stringUnit": {"value": member.name}}
    texts = [*_texts(source, options)]
    if not texts or target == language or is_done or entry.get("shouldTranslate") is False:
        return
    parent = _find(member.node, "localizations")
    span, write_member = _place(text, parent or member, target if parent else "localizations")

    def write(translations: Sequence[str]) -> str:
        remaining = iter(translations)
        localization = _localize(source, options, lambda _: next(remaining))
        return write_member(localization if parent else {target: localization})

    yield Splice(span, texts, write)


def _texts(localization: dict[str, Any], options: ReadOptions) -> list[str]:
    texts: list[str] = []

    def add(text: str) -> str:
        texts.append(text)
        return text

    _localize(localization, options, add)
    return texts


def _localize(localization: dict[str, Any], options: ReadOptions, translate: Callable[[str], str]) -> dict[str, Any]:
    """Return a localization with other texts: a single text, or a text for each plural form, device or substitution."""
    localized = dict(localization)
    if "stringUnit" in localization:
        text = localization["stringUnit"]["value"]
        translation = in_order(text, translate(text)) if is_translatable(text) else text
        localized["stringUnit"] = _unit(translation, options.is_unsure([text]))
    for name, variations in localization.get("variations", {}).items():
        if name == "plural":
            cases = _localize_plural(variations, options, translate)
        else:
            cases = {case: _localize(variation, options, translate) for case, variation in variations.items()}
        localized["variations"] = localized["variations"] | {name: cases}
    for name, substitution in localization.get("substitutions", {}).items():
        localized["substitutions"] = localized["substitutions"] | {name: _localize(substitution, options, translate)}
    return localized


def _localize_plural(forms: dict[str, Any], options: ReadOptions, translate: Callable[[str], str]) -> dict[str, Any]:
    texts = {category: form["stringUnit"]["value"] for category, form in forms.items()}
    wanted = plural_texts(texts, options.source, options.target)
    localized = {}
    for category, plural in sorted(wanted.items()):  # as Xcode sorts the names
        translation = in_order(plural.text, plural.translated([*map(translate, plural.texts)]))
        localized[category] = {"stringUnit": _unit(translation, options.is_unsure(plural.texts))}
    return localized


def _unit(text: str, is_unsure: bool) -> dict[str, str]:
    return {"state": "needs_review" if is_unsure else "translated", "value": text}


def _is_translated(localization: dict[str, Any]) -> bool:
    """Xcode adds empty translations itself, as new."""
    unit = localization.get("stringUnit")
    return bool(localization) if unit is None else bool(unit.get("value")) and unit.get("state") != "new"


def _members(node: Node) -> list[Member]:
    if not isinstance(node, Mapping):
        raise TypeError("a string catalog has a mapping here")
    return node.members


def _find(node: Node, name: str) -> Member | None:
    return next((member for member in _members(node) if member.name == name), None)


def _place(text: str, parent: Member, name: str) -> tuple[Span, Callable[[dict[str, Any]], str]]:
    """Return the place for a member of this name in a mapping, and a function that writes it. Xcode sorts the names."""
    members = _members(parent.node)
    first, indentation = (members[0], "") if members else (parent, "  ")
    line = line_break_before(text, first.span.start) + indentation
    later = next((member.span.start for member in members if str(member.name) > name), None)
    before = _find(parent.node, name)
    begin = end = ""
    if before is not None:
        span = before.span
    elif later is not None:
        span, end = Span(later, later), f",{line}"
    elif members:
        span, begin = Span(members[-1].span.end, members[-1].span.end), f",{line}"
    else:
        span = Span(text.index("{", parent.name_span.end), parent.span.end)
        begin, end = f"{{{line}", f"{line[:-2]}}}"
    colon = " : " if text.startswith(" :", parent.name_span.end) else ": "

    def write(value: dict[str, Any]) -> str:
        lines = json.dumps(value, ensure_ascii=False, indent=2, separators=(",", colon))
        return f"{begin}{json.dumps(name)}{colon}{lines.replace(chr(10), line)}{end}"

    return span, write
