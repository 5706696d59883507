"""Forms with a file whose name is encoded, as clients send them that are no browsers."""

from typing import Any

NAMES = ['filename="=?utf-8?B?w6l0w6kudHh0?="', "filename*=utf-8''%C3%A9t%C3%A9.txt"]
"""été.txt as .NET sends it, and as RFC 5987 has it."""


def form(name: str, data: bytes, **fields: str) -> dict[str, Any]:
    """Return body and headers of a form with a file, whose name is one of `NAMES`."""
    parts = [(f'name="{field}"', value.encode()) for field, value in fields.items()] + [(f'name="file"; {name}', data)]
    written = [
        b"--b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), part) for head, part in parts
    ]
    return {"content": b"".join(written) + b"--b--\r\n", "headers": {"content-type": "multipart/form-data; boundary=b"}}
