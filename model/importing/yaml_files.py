"""YAML files of other toolkits, read as texts: `no` is a language there, and `~` a piece of a word."""

from pathlib import Path
from typing import Any

import yaml

from model.checked_yaml import parsed
from model.importing.imported import ModelImportError

try:
    from yaml import CBaseLoader as BaseLoader
except ImportError:  # PyYAML was built without libyaml
    from yaml import BaseLoader  # type: ignore[assignment]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read keys and values; values are texts, or lists and mappings of texts. Raises ModelImportError: the file is
    missing, or is no mapping."""
    return yaml_of(read_text(path), path.name)


def yaml_of(text: str, name: str) -> dict[str, Any]:
    """Parse the text of a YAML file; its name is for the error."""
    try:
        content = parsed(text, BaseLoader)  # which makes texts alone
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelImportError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ModelImportError(f"{name} must be a mapping")
    return content


def read_text(path: Path) -> str:
    """Read a text; raise ModelImportError if the file is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ModelImportError(f"{path.name} is missing") from None
    except UnicodeDecodeError as error:
        raise ModelImportError(f"{path.name} is not UTF-8: {error}") from error
