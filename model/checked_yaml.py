"""Reads YAML files and checks every key and value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

try:
    from yaml import CSafeLoader as SafeLoader  # eight times as fast
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

Content = TypeVar("Content")


class Strict(BaseModel):
    """Base class of immutable settings without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def parsed(text: str, loader: Any = SafeLoader) -> Any:
    """Return the content of a text in YAML. Raises yaml.YAMLError: the text is not YAML, or its aliases stand for much
    more than it has. Raises ValueError: a day is one that no month has."""
    content = yaml.load(text, loader)  # noqa: S506  of the loaders of this project, none makes objects
    _refuse_expansion(content, len(text))
    return content


def _refuse_expansion(content: Any, size: int) -> None:
    """Refuse aliases of aliases: what a few lines stand for may not fit into any memory when it is written out. `size`
    is the number of characters of the text. Without aliases, the content has at most twice as many values and
    characters."""
    left, waiting = 2 * size + 8, [content]
    while waiting:
        value = waiting.pop()
        left -= 1 + (len(value) if isinstance(value, str) else 0)
        if left < 0:
            raise yaml.YAMLError("its aliases stand for much more than it has")
        if isinstance(value, dict):
            waiting += value
            waiting += value.values()
        elif isinstance(value, list | set | tuple):
            waiting += value


def load_yaml(path: Path, check: Callable[[Any], Content], error: type[ValueError]) -> Content:
    """Read a file and return the result of a pydantic check.

    Args:
        error: raised with the name of a file that is missing, no YAML or fails the check; then with each wrong key.
    """
    try:
        return check(parsed(path.read_text(encoding="utf-8")))
    except FileNotFoundError as cause:
        raise error(f"{path}: no such file") from cause
    except ValidationError as cause:
        raise error(f"{path}: {'; '.join(map(_in_words, cause.errors()))}") from cause
    except (yaml.YAMLError, ValueError, RecursionError) as cause:  # of YAML, of a day that no month has, or of UTF-8
        raise error(f"{path}: not YAML: {' '.join(str(cause).split())}") from cause


def save_yaml(path: Path, content: dict[str, Any]) -> None:
    """Write a mapping; its keys keep their order."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")


def _in_words(problem: ErrorDetails) -> str:
    """A problem of the whole file has no key."""
    key = ".".join(map(str, problem["loc"]))
    return f"{key}: {problem['msg']}" if key else problem["msg"]
