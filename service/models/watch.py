"""Notices that the files of artifacts have changed since they were read."""

from collections.abc import Iterable

from service.base.artifact import Artifact, Stamp, stamp_of


class Watch:
    """What is served is in memory, and does not change with its files. But whatever is loaded later would be refused.

    Args:
        artifacts: whose files are watched.
    """

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._files = [
            _File(artifact, name, stamp) for artifact in artifacts for name, stamp in artifact.stamps.items()
        ]

    def changed(self) -> dict[str, list[str]]:
        """By model, the files that are not any more what was read. Reads only files that were written or replaced."""
        found: dict[str, list[str]] = {}
        for file in self._files:
            if file.has_changed():
                found.setdefault(file.artifact.manifest.name, []).append(file.name)
        return found


class _File:
    def __init__(self, artifact: Artifact, name: str, stamp: Stamp | None) -> None:
        self.artifact = artifact
        self.name = name
        self._stamp = stamp
        self._differs = False

    def has_changed(self) -> bool:
        stamp = stamp_of(self.artifact.path(self.name))
        if stamp != self._stamp:
            self._stamp, self._differs = stamp, not self.artifact.is_as_read(self.name)
        return self._differs
