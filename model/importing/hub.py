"""Repositories of a hub: the files of a model, and no others, are downloaded.

huggingface_hub keeps files between imports, resumes what was interrupted, and reads `HF_ENDPOINT`, `HF_TOKEN` and the
usual variables of proxies.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from model.importing.imported import ModelImportError, in_words
from model.progress import advance, step

HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
SUFFIXES = (".json", ".txt", ".spm", ".model")
"""Suffixes of settings and tokenizers."""
CARD = "README.md"
MODULE = re.compile(r"\d+_\w+")
"""Folders of modules of sentence-transformers; others have the same model in other formats, or earlier ones."""
WEIGHTS = tuple(
    re.compile(rf"{name}(-\d+-of-\d+)?\.{suffix}(\.index\.json)?")
    for name, suffix in (("model", "safetensors"), ("pytorch_model", "bin"))
)
"""Names of weights in the order of preference."""


def fetch(repository: str, revision: str | None) -> tuple[Path, str]:
    """Download the files of a model; return their directory and the commit. Raises ModelImportError: the hub cannot be
    reached, or does not give them."""
    from huggingface_hub import HfApi  # takes a while to import
    from huggingface_hub.utils.tqdm import disable_progress_bars, tqdm

    class Reported(tqdm):
        """Shows the bytes of a file as our own progress."""

        def update(self, n: float | None = 1) -> bool | None:
            advance(n or 0)
            return None

    disable_progress_bars()
    hub = HfApi()
    try:
        info = hub.model_info(repository, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        wanted = wanted_files(sizes)
        step(f"fetching {repository}", total=sum(sizes[name] for name in wanted))
        paths = [Path(hub.hf_hub_download(repository, name, revision=info.sha, tqdm_class=Reported)) for name in wanted]
    except Exception as error:
        raise ModelImportError(_in_a_sentence(error, hub.endpoint, repository, revision)) from error
    if not paths:
        raise ModelImportError(f"{hub.endpoint}/{repository} has no files of a model")
    assert info.sha is not None
    depth = len(PurePosixPath(wanted[0]).parts)
    return paths[0].parents[depth - 1], info.sha


def wanted_files(names: Iterable[str]) -> list[str]:
    """Return the files of a repository that a model is read from; of its weights one format in each folder."""
    folders: dict[str, list[str]] = {}
    for name in sorted(names):
        folder, _, last = name.rpartition("/")
        if not folder or MODULE.fullmatch(folder):
            folders.setdefault(folder, []).append(last)
    return [f"{folder}/{name}".lstrip("/") for folder, held in folders.items() for name in _wanted(held)]


def _wanted(names: list[str]) -> list[str]:
    formats = [[name for name in names if pattern.fullmatch(name)] for pattern in WEIGHTS]
    weights = next((files for files in formats if files), [])
    others = [name for name in names if (name.endswith(SUFFIXES) and not name.endswith(".index.json")) or name == CARD]
    return [*others, *weights]


def _in_a_sentence(error: Exception, hub: str, repository: str, revision: str | None) -> str:
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    match error:
        case GatedRepoError():
            return f"{repository} is gated: ask for access at {hub}/{repository}, and set `HF_TOKEN` to a token"
        case RevisionNotFoundError():
            return f"{hub}/{repository} has no revision {revision}"
        case RepositoryNotFoundError():
            return f"{hub} has no {repository}, or it is private: set `HF_TOKEN` to a token that may read it"
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            return f"{hub} refuses the token in `HF_TOKEN`: {in_words(error)}"
        case HfHubHTTPError():
            return f"{hub} refused: {in_words(error)}"
    return f"{hub} cannot be reached: {in_words(error)}"
