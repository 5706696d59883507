"""Begins the process that loads the models that the settings name.

This imports little: models load while the process that is to serve them still imports its libraries.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service import __version__
from service.base.artifact import TOKENIZER, VOCABULARY, Artifact, read_artifacts
from service.base.contract import About
from service.base.errors import ProviderUnavailable
from service.base.settings import Settings
from service.workers.remote_loader import RemoteLoader

logger = logging.getLogger(__name__)

SOURCE = "service.models.loading:ArtifactSource"
"""By its name, because a server whose loops are processes has no use for ONNX Runtime."""

TokenizerFiles = dict[str, dict[str, bytes]]
"""By model and name, the content of the files that tokenizers are made of."""


@dataclass(frozen=True)
class Loaded:
    """What a server must know of models that loops run.

    Attributes:
        abouts: of each model, what its loader told.
        paths: where the loops listen.
        tokenizer_files: as they were when the models were loaded, for servers that begin later.
    """

    artifacts: dict[str, Artifact]
    abouts: dict[str, About]
    paths: list[Path]
    tokenizer_files: TokenizerFiles

    def announce(self) -> None:
        """Log what serves from here on."""
        names, providers = ", ".join(self.artifacts), sorted({about.provider for about in self.abouts.values()})
        logger.info("attend %s: %s on %s, %d loops", __version__, names, ", ".join(providers), len(self.paths))


class Loader:
    """A process that loads artifacts, and the loops that it forks.

    Raises:
        ArtifactRefused: one is missing, or its manifest is not as it should be.
    """

    def __init__(self, settings: Settings) -> None:
        self.artifacts = wanted_artifacts(settings)
        arguments = self.artifacts, settings
        self.remote = RemoteLoader(SOURCE, arguments, settings.probe_interval_s, settings.log, settings.run_directory)

    def wait(self) -> Loaded:
        """Wait until all models are loaded.

        Raises:
            StartRefused: one cannot be.
        """
        files = read_tokenizer_files(self.artifacts)
        self.remote.wait_until_loaded()
        return Loaded(self.artifacts, self.remote.abouts, self.remote.paths, files)

    def end(self) -> None:
        """End all loops at once: their requests have been answered."""
        self.remote.end()


def wanted_artifacts(settings: Settings) -> dict[str, Artifact]:
    """By name, those that the settings name, or all.

    Raises:
        ArtifactRefused: one is missing, or its manifest is not as it should be.
    """
    return {artifact.manifest.name: artifact for artifact in read_artifacts(settings.artifacts, settings.models)}


def read_tokenizer_files(artifacts: Mapping[str, Artifact]) -> TokenizerFiles:
    """Raises ArtifactRefused: one is missing, or not what the manifest says."""
    return {
        name: {file: artifact.read(file) for file in (TOKENIZER, VOCABULARY) if file in artifact.manifest.files}
        for name, artifact in artifacts.items()
    }


def show_one_device(device: int | None) -> None:
    """Let CUDA see one GPU alone, which is then the first one for all that use it; None changes nothing.

    Raises:
        ProviderUnavailable: fewer are listed.
    """
    if device is None:
        return
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = listed.split(",") if listed else [str(number) for number in range(device + 1)]
    if device >= len(visible):
        raise ProviderUnavailable(f"ATTEND_DEVICE is {device}, but CUDA_VISIBLE_DEVICES lists {listed}")
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[device]
