"""Repositories of a hub: the files of a model, and no others, are downloaded, and compared with the hub's sums.

huggingface_hub keeps files between imports, goes on where a connection broke, and reads `HF_ENDPOINT`, `HF_TOKEN` and
the usual variables of proxies. It compares sizes alone.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from manifest.sums import sum_of_file
from model.importing.imported import HubError, ModelImportError, NotOnHubError, in_words
from model.progress import advance, step

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

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
    """Download the files of a model; return their directory and the commit. Raises HubError: the hub cannot be
    reached, or does not give them (NotOnHubError: it has no such model). Raises ModelImportError: a file is damaged."""
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
        files = {file.rfilename: file for file in info.siblings or []}
        wanted = wanted_files(files)
        total = sum(files[name].size or 0 for name in wanted)
        licence = getattr(info.card_data, "license", None) or "not named"
        step(f"fetching {repository}: {total / 1e6:,.1f} MB, licence {licence}", total)
        paths = [Path(hub.hf_hub_download(repository, name, revision=info.sha, tqdm_class=Reported)) for name in wanted]
    except Exception as error:
        raise _refusal(error, hub.endpoint, repository, revision) from error
    if not paths:
        raise ModelImportError(f"{hub.endpoint}/{repository} has no files of a model")
    for name, path in zip(wanted, paths, strict=True):
        _verify(path, files[name], f"{repository}/{name}")
    assert info.sha is not None
    depth = len(PurePosixPath(wanted[0]).parts)
    return paths[0].parents[depth - 1], info.sha


def _verify(path: Path, file: "RepoSibling", said: str) -> None:
    """Compare a downloaded file with the sum that the hub tells, if it does. A damaged one is deleted, so that it is
    fetched anew. Raises ModelImportError: it is damaged."""
    expected: str | None
    if file.lfs is not None:
        expected, found = file.lfs.sha256, sum_of_file(path).sha256
    else:  # git's own sum of a file
        content = path.read_bytes()
        expected, found = file.blob_id, hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324
    if expected not in (None, found):
        path.resolve().unlink(missing_ok=True)  # the file in the cache, to which the path is a link
        path.unlink(missing_ok=True)
        raise ModelImportError(
            f"{said} was damaged on its way: its sum is {found}, and the hub says {expected}; run the command again"
        )


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


def _refusal(error: Exception, hub: str, repository: str, revision: str | None) -> HubError:
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    match error:
        case GatedRepoError():
            said = f"{repository} is gated: ask for access at {hub}/{repository}, and set `HF_TOKEN` to a token"
        case RevisionNotFoundError():
            said = f"{hub}/{repository} has no revision {revision}"
        case RepositoryNotFoundError():
            return NotOnHubError(
                f"{hub} has no {repository}, or it is private: set `HF_TOKEN` to a token that may read it"
            )
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            said = f"{hub} refuses the token in `HF_TOKEN`: {in_words(error)}"
        case HfHubHTTPError():
            said = f"{hub} refused: {in_words(error)}"
        case _:
            said = f"{hub} cannot be reached: {in_words(error)}"
    return HubError(said)
