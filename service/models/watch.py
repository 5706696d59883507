"""Notices that the files of artifacts have changed since they were read."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.base.artifact import Artifact, Stamp, stamp_of


class Watch:
    """Compares the files of artifacts with what was read of them.

    Models that serve are in memory and do not change with their files, but a worker that starts later would refuse
    changed files.
    """

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._files = [
            _File(artifact, name, stamp) for artifact in artifacts for name, stamp in artifact.stamps.items()
        ]

    def changed(self) -> dict[str, list[str]]:
        """Return, by model, the files that differ from what was read. Only files that were written since are read."""
        found: dict[str, list[str]] = {}
        for file in self._files:
            if file.has_changed():
                found.setdefault(file.artifact.manifest.name, []).append(file.name)
        return found


@dataclass
class _File:
    artifact: Artifact
    name: str
    stamp: Stamp | None
    differs: bool = False

    def has_changed(self) -> bool:
        stamp = stamp_of(self.artifact.path(self.name))
        if stamp != self.stamp:
            self.stamp, self.differs = stamp, not self.artifact.is_as_read(self.name)
        return self.differs
