"""The header of a PO file: its fields are read, and set without a change of anything else."""

import re
from collections.abc import Mapping

from service.documents.localization.plural_forms import PluralForms
from service.documents.localization.po_syntax import WRITTEN
from service.text.languages import are_same, canonical

EMPTY = 'msgid ""{0}msgstr ""'
UTF_8 = {"Content-Type": "text/plain; charset=UTF-8"}
NEW = UTF_8 | {"Content-Transfer-Encoding": "8bit"}
"""The fields of a file that had no header."""
UNDECLARED = "charset=CHARSET"
"""A template has this in place of an encoding, as long as all of its messages are ASCII."""


def field_of(header: str, name: str) -> str:
    """Return the value of a field; "" if the header lacks it."""
    match = re.search(rf"^{name}:(.*)$", header, re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else ""


def is_in_language(header: str, target: str | None) -> bool:
    """Return whether the translations of a PO file are in a language, as far as its header tells."""
    language = field_of(header, "Language")
    return not language or target is None or are_same(language, target)


def plural_forms(header: str, target: str) -> PluralForms:
    """Return the plural forms of a translation, from the header unless it is of another language."""
    declared = PluralForms.parse(field_of(header, "Plural-Forms")) if is_in_language(header, target) else None
    usual = PluralForms.of_language(target)
    is_named = field_of(header, "Language") != ""
    return declared if declared and (is_named or declared.n_forms == usual.n_forms) else usual


def translated_fields(header: str, target: str, forms: PluralForms) -> dict[str, str]:
    """Return the fields that a translation has in place of fields of the header."""
    language = field_of(header, "Language")
    fields = {"Plural-Forms": forms.header}
    if not language or not are_same(language, target):
        fields["Language"] = (canonical(target) or target).replace("-", "_")
    return fields | (UTF_8 if UNDECLARED in field_of(header, "Content-Type") else {})


def with_fields(written: str, fields: Mapping[str, str], line_end: str) -> str:
    """Return a header, as it is written in the file, with other values of some fields."""
    for name, value in fields.items():
        pattern = rf"((?:\"|\\n){name}:[ \t]*)(?:[^\"\\]|\\[^n]|\"\s*\")*"
        value = value.translate(WRITTEN)
        template = r"\g<1>" + value.replace("\\", r"\\")
        written, n_found = re.subn(pattern, template, written, count=1, flags=re.IGNORECASE)
        if not n_found:
            is_open = written.endswith('"') and not written.endswith(('\\n"', '""'))
            written = (written[:-1] + '\\n"' if is_open else written) + f'{line_end}"{name}: {value}\\n"'
    return written
