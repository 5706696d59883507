"""Starts the process that loads the models of the settings.

This module imports little: models load while the server's process still imports its libraries.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service import __version__
from service.base.artifact import Artifact, read_artifacts
from service.base.contract import ModelInfo
from service.base.errors import ProviderUnavailable
from service.base.manifest import TOKENIZER, VOCABULARY
from service.base.settings import Settings
from service.workers.remote_loader import RemoteLoader

logger = logging.getLogger(__name__)

SOURCE = "service.models.loading:ArtifactSource"
"""The source of models, by its name: a server whose workers are processes does not import ONNX Runtime."""

TokenizerFiles = dict[str, dict[str, bytes]]
"""The content of the files of tokenizers, by model and file name."""


@dataclass(frozen=True)
class LoadedModels:
    """What a server needs to know about models that workers run.

    Attributes:
        model_infos: what the loader reported about each model.
        paths: the sockets where the workers listen.
        tokenizer_files: the files as they were when the models were loaded, for servers that start later.
    """

    artifacts: dict[str, Artifact]
    model_infos: dict[str, ModelInfo]
    paths: list[Path]
    tokenizer_files: TokenizerFiles

    def announce(self) -> None:
        """Log which models are served from now on."""
        names, providers = ", ".join(self.artifacts), sorted({info.provider for info in self.model_infos.values()})
        logger.info("attend %s: %s on %s, %d workers", __version__, names, ", ".join(providers), len(self.paths))


class Loader(RemoteLoader):
    """The process that loads the artifacts of the settings, and the workers that it forks.

    Raises:
        ArtifactRefused: an artifact is missing, or its manifest is invalid.
    """

    def __init__(self, settings: Settings) -> None:
        self.artifacts = configured_artifacts(settings)
        arguments = self.artifacts, settings
        super().__init__(SOURCE, arguments, settings.probe_interval_s, settings.log, settings.run_directory)

    def wait(self) -> LoadedModels:
        """Wait until all models are loaded.

        Raises:
            StartRefused: a model cannot be loaded.
        """
        files = read_tokenizer_files(self.artifacts)
        self.wait_until_loaded()
        return LoadedModels(self.artifacts, self.model_infos, self.paths, files)


def configured_artifacts(settings: Settings) -> dict[str, Artifact]:
    """Return the artifacts that the settings name, or all, by name.

    Raises:
        ArtifactRefused: an artifact is missing, or its manifest is invalid.
    """
    return {artifact.manifest.name: artifact for artifact in read_artifacts(settings.artifacts, settings.models)}


def read_tokenizer_files(artifacts: Mapping[str, Artifact]) -> TokenizerFiles:
    """Read the files of tokenizers.

    Raises:
        ArtifactRefused: a file is missing, or is not what the manifest says.
    """
    return {
        name: {file: artifact.read(file) for file in (TOKENIZER, VOCABULARY) if file in artifact.manifest.files}
        for name, artifact in artifacts.items()
    }


def select_device(device: int | None) -> None:
    """Let CUDA see only one GPU; None changes nothing.

    Raises:
        ProviderUnavailable: CUDA_VISIBLE_DEVICES lists too few GPUs.
    """
    if device is None:
        return
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = listed.split(",") if listed else [str(number) for number in range(device + 1)]
    if device >= len(visible):
        raise ProviderUnavailable(f"ATTEND_DEVICE is {device}, but CUDA_VISIBLE_DEVICES lists {listed}")
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[device]
