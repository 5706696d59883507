"""The API keys of a setting, and of a file that may change while the service runs."""

import hmac
import logging
from pathlib import Path

from service.base.errors import StartRefused
from service.base.settings import Settings

logger = logging.getLogger(__name__)


class Keys:
    """All valid keys. Logs and errors never show a key.

    Raises:
        StartRefused: the file of keys cannot be read, or has no key.
    """

    def __init__(self, settings: Settings) -> None:
        self._given = [key.get_secret_value().encode() for key in settings.api_keys]
        self._file = settings.api_keys_file
        self._keys = self._given + _read_keys(self._file)

    def __bool__(self) -> bool:
        """Return whether requests need a key."""
        return bool(self._keys)

    def have(self, key: bytes) -> bool:
        # Compare with every key, each in constant time, so that response times reveal nothing about the keys.
        return sum(hmac.compare_digest(key, own) for own in self._keys) > 0

    def reread(self) -> None:
        """Read the file again. If it cannot be read or has no key, log why and keep the old keys."""
        if self._file is None:
            return
        try:
            self._keys = self._given + _read_keys(self._file)
        except StartRefused as error:
            logger.error("the API keys stay as they were: %s", error)
        else:
            logger.info("the API keys were read again; how many: %d", len(self._keys))


def _read_keys(file: Path | None) -> list[bytes]:
    if file is None:
        return []
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise StartRefused(f"The file of API keys {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StartRefused(f"The file of API keys {file} is not UTF-8") from None
    keys = [line.strip().encode() for line in lines if line.strip()]
    if not keys:
        raise StartRefused(f"The file of API keys {file} has no key")
    return keys
