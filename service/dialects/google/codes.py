"""Codes of languages and names of models, which both versions share."""

from service.dialects.shared.languages import LanguageCodes

OWN = {"zh": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "jv": "jw", "nb": "no", "fil": "tl", "pt-BR": "pt"}
CODES = LanguageCodes(OWN)
UNKNOWN = "und"
GENERAL = frozenset({"", "nmt", "base", "general/nmt", "general/base"})
"""Names of Google's own models, in place of which attend chooses."""


def native_model(model: str | None) -> str | None:
    """Return the name of a model of attend; None for Google's own models."""
    name = (model or "").rpartition("models/")[2]
    return None if name in GENERAL else name
