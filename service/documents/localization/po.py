"""PO files of gettext (.po, .pot): each message is a text; its translation is written behind it, flagged as fuzzy.

Everything else stays unchanged, except the language, its plural forms and the encoding in the header.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import decode, named_encoding
from service.documents.localization.plural_forms import PluralForms
from service.documents.localization.po_header import (
    EMPTY,
    NEW,
    UTF_8,
    is_in_language,
    plural_forms,
    translated_fields,
    with_fields,
)
from service.documents.localization.po_syntax import Entry, entries_of, quoted
from service.documents.localization.printf_order import in_order, with_blanks, without_blanks
from service.kept.kept_spans import kept_spans
from service.text.spans import Replacement, Span, replace_spans

CHARSET = re.compile(rb"\"Content-Type:[^\"\\]*?charset=(?!CHARSET\\n)([\w.:-]+)", re.IGNORECASE)
STRINGS = re.compile(r"^(?:msg\w+(?:\[\d+\])?[ \t]*)?\"[^\r\n]*", re.MULTILINE)
LINE_END = re.compile(r"\r\n?|\n")
WIDTH = 80
"""The width of lines, in files whose lines are not longer."""
FUZZY = "fuzzy"
NUMBERED = {"c-format", "objc-format", "php-format"}
"""Flags of messages whose conversions may have numbers."""


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite a PO file. Raises InvalidDocument: it is not a PO file, or not text in the encoding that it declares."""
    charset = CHARSET.search(data)
    declared = named_encoding(charset[1].decode()) if charset else None
    text, encoding = decode(data, declared and replace(declared, errors="strict"))
    entries = [*entries_of(text, encoding)]
    header = next((entry for entry in entries if entry.is_header), None)
    fields = header.strings.get("msgstr", "") if header else ""
    messages = [entry for entry in entries if all(map(str.strip, entry.messages))]
    if options.only_missing and is_in_language(fields, options.target):
        messages = [entry for entry in messages if not all(entry.translated) or FUZZY in entry.flag_names(text)]
    texts = [_shown(entry, text, message) for entry in messages for message in entry.messages]
    translations = yield Contents(texts, "text")
    if translations == texts:
        return data
    remaining = iter(translations)
    translated = [[next(remaining) for _ in entry.messages] for entry in messages]
    forms = plural_forms(fields, options.target or "")
    new_fields = translated_fields(fields, options.target or "", forms)
    edits = [*_edits(text, zip(messages, translated, strict=True), forms, options)]
    try:
        return encoding.encode(_edited(text, edits, header, new_fields))
    except UnicodeEncodeError:  # the encoding lacks letters of the target language
        return replace(encoding, name="utf-8").encode(_edited(text, edits, header, new_fields | UTF_8))


def _edits(
    text: str, translated: Iterable[tuple[Entry, list[str]]], forms: PluralForms, options: ReadOptions
) -> Iterator[Replacement]:
    line_end = _line_end(text)
    width = WIDTH if all(len(line) <= WIDTH for line in STRINGS.findall(text)) else len(text)
    for entry, translations in translated:
        flags = entry.flag_names(text)
        if NUMBERED.intersection(flags):
            translations = [*map(in_order, entry.messages, map(with_blanks, entry.messages, translations))]
        strings = _strings(entry, translations, forms)
        if [*strings.values()] == entry.translated:
            continue
        # The old translation was made of the previous message.
        comments = [(Span(line.start, _end_of_line(text, line.end)), "") for line in entry.previous]
        is_fuzzy = options.is_unsure(entry.messages)
        if entry.flags is None:
            comments += [(Span(entry.start, entry.start), f"#, {FUZZY}{line_end}")] if is_fuzzy else []
        elif is_fuzzy and FUZZY not in flags:
            comments.append((Span(entry.flags.start, entry.flags.start + len("#,")), f"#, {FUZZY},"))
        elif not is_fuzzy and FUZZY in flags:
            others = ", ".join(flag for flag in flags if flag != FUZZY)
            line = Span(entry.flags.start, _end_of_line(text, entry.flags.end))
            comments.append((line, f"#, {others}{line_end}" if others else ""))
        yield from sorted(comments, key=lambda edit: edit[0].pair)
        written = (quoted(keyword, string, width, line_end) for keyword, string in strings.items())
        yield entry.translations, line_end.join(written)


def _shown(entry: Entry, text: str, message: str) -> str:
    return without_blanks(message) if NUMBERED.intersection(entry.flag_names(text)) else message


def _strings(entry: Entry, translations: Sequence[str], forms: PluralForms) -> dict[str, str]:
    """A plural form is made of the message or of its plural."""
    if len(translations) == 1:
        return {"msgstr": translations[0]}
    singular = forms.singular if forms.is_for_one_alone or _have_same_placeholders(*entry.messages) else None
    return {f"msgstr[{i}]": translations[0 if i == singular else 1] for i in range(forms.n_forms)}


def _have_same_placeholders(message: str, plural: str) -> bool:
    """Placeholders differ in "One file" and "%d files"."""
    in_message, in_plural = (sorted(kept.span.of(text) for kept in kept_spans(text)) for text in (message, plural))
    return in_message == in_plural


def _edited(text: str, edits: Iterable[Replacement], header: Entry | None, fields: dict[str, str]) -> str:
    line_end = _line_end(text)
    if header is None:
        head = with_fields(EMPTY.format(line_end), NEW | fields, line_end) + 2 * line_end
        return head + replace_spans(text, edits)[0]
    head = with_fields(header.translations.of(text), fields, line_end)
    all_edits = sorted([*edits, (header.translations, head)], key=lambda edit: edit[0].pair)
    return replace_spans(text, all_edits)[0]


def _end_of_line(text: str, position: int) -> int:
    match = LINE_END.search(text, position)
    return match.end() if match else position


def _line_end(text: str) -> str:
    match = LINE_END.search(text)
    return match.group() if match else "\n"
