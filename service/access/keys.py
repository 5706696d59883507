"""The API keys of a setting, and of a file that may change while the service runs."""

import logging

from service.access.key_file import Key, digest_of, read_keys
from service.base.errors import StartRefused
from service.base.settings import Settings

logger = logging.getLogger(__name__)


class Keys:
    """All valid keys, of which only digests are kept. Logs and errors never show a key. Raises StartRefused: the file
    of keys cannot be read, has no key, or is wrong."""

    def __init__(self, settings: Settings) -> None:
        self._given = [Key(digest_of(key.get_secret_value().encode())) for key in settings.api_keys]
        self._file = settings.api_keys_file
        self._keys = self._read()

    def __bool__(self) -> bool:
        """Whether requests need a key."""
        return bool(self._keys)

    @property
    def have_names(self) -> bool:
        return any(key.name is not None for key in self._keys.values())

    def find(self, key: bytes) -> Key | None:
        """Return a valid key. Digests are compared, so that response times reveal nothing about the keys."""
        return self._keys.get(digest_of(key))

    def reread(self, logs: bool = True) -> bool:
        """Read the file again. Return whether it was read; otherwise the old keys stay. With `logs`, log the new number
        of keys, or what is wrong."""
        if self._file is None:
            return True
        try:
            self._keys = self._read()
        except StartRefused as error:
            logger.log(logging.ERROR if logs else logging.DEBUG, "the API keys stay as they were: %s", error)
            return False
        logger.log(logging.INFO if logs else logging.DEBUG, "the API keys were read again: %d", len(self._keys))
        return True

    def _read(self) -> dict[str, Key]:
        of_file = read_keys(self._file) if self._file is not None else []
        return {key.digest: key for key in [*self._given, *of_file]}
