"""Starts the processes that load the models of the settings.

This module imports little: models load while the server's process still imports its libraries.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from manifest.layout import TOKENIZER, VOCABULARY
from service import __version__
from service.base.artifact import Artifact, read_artifacts
from service.base.contract import ModelInfo
from service.base.cores import reason_for_workers
from service.base.errors import StartRefused
from service.base.settings import Settings
from service.pool.devices import devices_of
from service.pool.remote_loader import RemoteLoader

logger = logging.getLogger(__name__)

SOURCE = "service.worker.artifact_source:ArtifactSource"
"""The source of models, by its name: a server does not import ONNX Runtime."""
TokenizerFiles = dict[str, dict[str, bytes]]
"""The content of the files of tokenizers, by model and file name."""


@dataclass(frozen=True)
class LoadedModels:
    """What a server needs to know about models that workers run.

    Attributes:
        model_infos: what the loader reported about each model.
        paths: the sockets where the workers listen, and the device of each: None for what CUDA or the CPU chooses.
        tokenizer_files: the files as they were when the models were loaded, for servers that start later.
        slow: the models that have workers of their own.
    """

    artifacts: dict[str, Artifact]
    model_infos: dict[str, ModelInfo]
    paths: dict[Path, str | None]
    tokenizer_files: TokenizerFiles
    slow: tuple[str, ...] = ()

    def announce(self, settings: Settings) -> None:
        """Log which models are served from now on, by how many workers, and why so many."""
        providers = sorted({info.provider for info in self.model_infos.values()})
        reasons = []
        if len(self.slow) < len(self.artifacts):
            reasons.append(reason_for_workers(settings, providers[0]))
        if self.slow:
            reasons.append(f"one for each slow model: {', '.join(self.slow)}")
        workers = f"{len(self.paths)} workers ({', '.join(reasons)})" if self.paths else "in the server's process"
        names = ", ".join(self.artifacts)
        logger.info("attend %s: %s on %s, %s", __version__, names, ", ".join(providers), workers)


class Loader:
    """The processes that load the artifacts of the settings, one for each device, and the workers that they fork. CUDA
    shows a process what CUDA_VISIBLE_DEVICES lists when it begins, and no more than one MIG instance. With a process
    for each device, a lost device harms CUDA in its own process alone. Raises ArtifactRefused: an artifact is missing,
    or its manifest is invalid. Raises ProviderUnavailable: a device that the settings name is not there."""

    def __init__(self, settings: Settings) -> None:
        self.artifacts = configured_artifacts(settings)
        self._loaders: dict[str | None, RemoteLoader] = {}
        arguments = self.artifacts, settings
        try:
            for device in devices_of(settings):
                self._loaders[device] = RemoteLoader(
                    SOURCE, arguments, settings.probe_interval_s, settings.log, settings.run_directory, device
                )
        except BaseException:
            self.end()
            raise

    def report_worker_ends(self, report: Callable[[str], None]) -> None:
        """Call a function with the signal or status of each worker that ends, in a thread of the loader."""
        for loader in self._loaders.values():
            loader.on_worker_end = report

    def wait(self) -> LoadedModels:
        """Wait until all models are loaded on all devices. Raises StartRefused: a model cannot be loaded."""
        files = read_tokenizer_files(self.artifacts)
        for device, loader in self._loaders.items():
            try:
                loader.wait_until_loaded()
            except StartRefused as refusal:
                self.end()
                if device is None:
                    raise
                raise StartRefused(f"Device {device}: {refusal}") from None
        paths = {path: device for device, loader in self._loaders.items() for path in loader.paths}
        first = next(iter(self._loaders.values()))
        return LoadedModels(self.artifacts, first.model_infos, paths, files, first.slow)

    def end(self) -> None:
        """End all workers immediately: their requests have been answered."""
        for loader in self._loaders.values():
            loader.end()


def configured_artifacts(settings: Settings) -> dict[str, Artifact]:
    """Return the artifacts that the settings name, or all, by name. Raises ArtifactRefused: an artifact is missing, or
    its manifest is invalid."""
    return {artifact.manifest.name: artifact for artifact in read_artifacts(settings.artifacts, settings.models)}


def read_tokenizer_files(artifacts: Mapping[str, Artifact]) -> TokenizerFiles:
    """Read the files of tokenizers. Raises ArtifactRefused: a file is missing, or is not what the manifest says."""
    return {
        name: {file: artifact.read(file) for file in (TOKENIZER, VOCABULARY) if file in artifact.manifest.files}
        for name, artifact in artifacts.items()
    }
