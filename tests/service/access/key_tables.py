"""Keys of a file in TOML."""

from typing import Any

from service.access.key_file import digest_of


def table(name: str, *keys: str, **options: Any) -> str:
    """The table of a client, which has these keys."""
    given = {"name": name, "sha256": [digest_of(key.encode()) for key in keys]} | options
    return "\n".join(["[[keys]]", *(f"{option} = {value!r}" for option, value in given.items()), ""])
