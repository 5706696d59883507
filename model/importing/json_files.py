"""JSON files of other toolkits."""

import json
from pathlib import Path
from typing import Any


def parsed_json(path: Path) -> Any:
    """Return the content of a file. Raises ValueError: it is not JSON in UTF-8, or nested too deeply. Raises OSError:
    it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
