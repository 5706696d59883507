"""The file of API keys: a key on each line, or in TOML a table for each key, which says what its client may do."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from manifest.stops_early import StopsEarly
from service.access.ownership import Right
from service.base.configuration import SUBJECT
from service.base.errors import StartRefused
from service.base.settings import one_rate

IS_TOML = re.compile(r"^\s*([\[\]{}#]|[\w.\"'-]+\s*=\s*[\"'\[{])", re.MULTILINE)
"""Signs of TOML: a table, a comment, or a value. No key has these, so no mistake in TOML turns its lines into keys."""
HEADER = re.compile(r"^[ \t]*\[\[[ \t]*keys[ \t]*\]\]", re.MULTILINE)
MAX_LINE = 10_000
VERBS = {"missing": "is required", "extra_forbidden": "is unknown"}
"""Messages for some types of pydantic's errors."""


@dataclass(frozen=True)
class Key:
    """What the client of a key may do. It is known by `name`, or by `digest` if it has no name."""

    digest: str
    name: str | None = None
    rate: str | None = None
    characters_per_month: int | None = None
    routes: tuple[str, ...] = ("/",)
    shared: Mapping[str, Right] = field(default_factory=dict, hash=False)
    """Other clients, and what this one may do with their glossaries and memories."""

    @property
    def client(self) -> str:
        """The name, or the digest if there is none."""
        return f"key:{self.digest}" if self.name is None else client_named(self.name)

    def may_use(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{route.rstrip('/')}/") for route in self.routes)


def client_named(name: str) -> str:
    return f"name:{name}"


def digest_of(key: bytes) -> str:
    return sha256(key).hexdigest()


def read_keys(file: Path) -> list[Key]:
    """Raises StartRefused: the file cannot be read, has no key, or is wrong. The message never has a key."""
    try:
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise StartRefused(f"The file of API keys {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        wrong = error.object.count(b"\n", 0, error.start) + 1
        raise StartRefused(f"The file of API keys {file} is not UTF-8 (at line {wrong})") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > MAX_LINE:  # names in names take quadratic time
            has = f"has a line of {len(line)} characters (at line {number})"
            raise StartRefused(f"The file of API keys {file} {has}; the limit is {MAX_LINE}")
    try:
        keys = _tables(text) if IS_TOML.search(text) else [*map(_nameless, text.splitlines())]
    except ValueError as error:
        raise StartRefused(f"The file of API keys {file} is wrong: {error}") from None
    if not (valid := [key for key in keys if key is not None]):
        raise StartRefused(f"The file of API keys {file} has no key")
    return valid


def _nameless(line: str) -> Key | None:
    return Key(digest_of(line.strip().encode())) if line.strip() else None


def _route(value: str) -> str:
    if not re.fullmatch(r"/\S*", value):
        raise ValueError("must be a path that begins with /, such as /translate")
    return value


def _digest(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("must be the SHA-256 of a key: 64 hexadecimal digits")
    return value.lower()


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _name(value: str) -> str:
    if not re.fullmatch(r"[\w.@-]{1,64}", value):
        raise ValueError("must be 1 to 64 letters, digits, and characters of `_.@-`")
    return value


Digest = Annotated[str, AfterValidator(_digest)]


class _Table(StopsEarly):
    """`sha256` may be a list, so that a client may change from one key to the next."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, AfterValidator(_name)]
    sha256: Annotated[list[Digest], Field(min_length=1), BeforeValidator(_listed)]
    rate: Annotated[str, AfterValidator(one_rate)] | None = None
    characters_per_month: int | None = Field(default=None, ge=1)
    routes: Annotated[list[Annotated[str, AfterValidator(_route)]], Field(min_length=1)] = Field(default=["/"])
    shared: dict[str, Right] = Field(default={})

    def keys(self) -> list[Key]:
        options = self.model_dump(include={"name", "rate", "characters_per_month"})
        shared = {client_named(name): right for name, right in self.shared.items()}
        return [Key(digest, routes=(*self.routes,), shared=shared, **options) for digest in self.sha256]


class _File(StopsEarly):
    model_config = ConfigDict(extra="forbid")

    keys: list[_Table] = Field(default=[])


def _tables(text: str) -> list[Key]:
    """Raises ValueError: the text is not TOML, or a value in it is wrong. The message is one sentence."""
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    try:
        tables = _File.model_validate(content, strict=True).keys
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(_sentence(problem, content) + _place(text, *problem["loc"][1:3])) from None
    keys = [key for table in tables for key in table.keys()]  # noqa: SIM118  no dictionary
    for kind, values in (("name", [table.name for table in tables]), ("sha256", [key.digest for key in keys])):
        [(most, n)] = Counter(values).most_common(1) or [("", 0)]
        if n > 1:
            last = text.count("\n", 0, text.rfind(most)) + 1
            raise ValueError(f"`{kind}` must be another one for each key, but {n} have {most} (at line {last})")
    names = {table.name for table in tables}
    for table in tables:
        if unknown := [name for name in table.shared if name not in names]:
            raise ValueError(f"`shared` of {table.name} names {unknown[0]}, which is the name of no key")
    return keys


def _place(text: str, table: object = None, field: object = None) -> str:
    """Return the line of a field, or of its table if the field is missing; "" for tables of another form."""
    headers = [header.start() for header in HEADER.finditer(text)]
    if not isinstance(table, int) or table >= len(headers):
        return ""
    start, end = headers[table], [*headers, len(text)][table + 1]
    match = re.compile(rf"^\s*{re.escape(str(field))}\s*=", re.MULTILINE).search(text, start, end)
    at = text.count("\n", 0, match.end() if match else start) + 1
    return f" (at line {at})"


def _sentence(problem: Any, content: dict[str, Any]) -> str:
    message = VERBS.get(problem["type"]) or SUBJECT.sub("must ", problem["msg"].removeprefix("Value error, "))
    match problem["loc"]:
        case ("keys", int(i), str(field), *_):
            name = content["keys"][i].get("name")
            return f"`{field}` of key {i + 1}{f' ({name})' if isinstance(name, str) else ''} {message}"
        case (str(field), *_):
            return f"`{field}` {message}; each key is a table [[keys]]"
    return str(message)
