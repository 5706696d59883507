"""A pack: one tar file with artifacts, and perhaps what pip installs, for machines without a network.

Its first member, pack.json, has the sum of every other one, in the order in which they follow.
"""

from pathlib import PurePosixPath, PureWindowsPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from manifest.sums import FileSum

PACK, ARTIFACTS, WHEELS = "pack.json", "artifacts", "wheels"
"""The first member, and the folders of the others."""


class Pack(BaseModel):
    """The content of pack.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_version: Literal[1] = 1
    files: dict[str, FileSum]

    @model_validator(mode="after")
    def _stays_in_its_folders(self) -> "Pack":
        for name in self.files:
            path = PurePosixPath(name)
            leads_out = PureWindowsPath(name).anchor or "\\" in name or str(path) != name
            is_hidden = any(part.startswith(".") for part in path.parts)
            is_known = path.parts[:1] == (WHEELS,) or (path.parts[:1] == (ARTIFACTS,) and len(path.parts) > 2)
            if leads_out or is_hidden or not is_known:
                raise ValueError(f"{name!r} is not in a folder of {ARTIFACTS} or in {WHEELS}")
        return self
