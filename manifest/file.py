"""Reads and writes manifest.json."""

from pathlib import Path

from pydantic import ValidationError

from manifest.layout import MANIFEST
from manifest.schema import FORMAT_VERSION, Manifest

ONLY_SOME = ("decoder_self", "pairs", "prompts", "nearness", "shortlist", "confidence")
"""Fields that only some models need: they are written only if they differ from their default."""


class ManifestError(ValueError):
    """A manifest is damaged, or of another format; the message says what is wrong first."""


def parse_manifest(content: bytes) -> Manifest:
    """Parse a manifest; numbers in quotes are refused. Raises ManifestError: the content is no manifest that this
    version reads."""
    try:
        return Manifest.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise ManifestError(_first_problem(error)) from error


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of an artifact. Raises ManifestError: it is no manifest that this version reads. Raises
    OSError: it cannot be read."""
    return parse_manifest((directory / MANIFEST).read_bytes())


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Write manifest.json, the last file of an artifact."""
    fields = Manifest.model_fields
    usual = {n for n in ONLY_SOME if getattr(manifest, n) == fields[n].get_default(call_default_factory=True)}
    text = manifest.model_dump_json(indent=2, exclude=usual)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _first_problem(invalid: ValidationError) -> str:
    """Return one sentence about the error that matters most: another format version explains all others."""
    error = min(invalid.errors(), key=lambda error: error["loc"] != ("format_version",))
    if error["loc"] == ("format_version",):
        return f"format_version is {error['input']!r}, this version of attend reads {FORMAT_VERSION}"
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}" if place else error["msg"]
