"""The registries of Firefox's models: which languages a file is for, and its sum when it is unpacked.

`records.json` is what Firefox itself reads (a list of records in `data`), `models.json` the list of all models that
Mozilla trained, by direction. A folder of a model may have either, as it was downloaded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from manifest.sums import sum_of_content
from model.importing.hugging_face import read_json_if_there
from model.importing.imported import ModelImportError, in_sentences
from model.importing.packed_files import read_packed, unpacked_name

RECORDS, MODELS = "records.json", "models.json"
LANGUAGES = (("sourceLanguage", "fromLang"), ("targetLanguage", "toLang"))
"""Keys of a record's languages, and those of earlier registries, whose files are not compressed."""


@dataclass(frozen=True)
class Record:
    """A file of a registry.

    Attributes:
        name: name of the unpacked file.
        sha256: sum of the unpacked file; None if the registry has none.
    """

    name: str
    source: str
    target: str
    sha256: str | None


def records_of(directory: Path, path: Path) -> list[Record]:
    """Return the records of a file of a model, which a registry has for each version; none without a registry. Raises
    ModelImportError: the registry is damaged or does not name the file, or the file is not what it says."""
    if not (registries := [name for name in (RECORDS, MODELS) if (directory / name).is_file()]):
        return []
    said = registries[0]
    with in_sentences(f"{said} is no registry of Firefox's models"):
        content = read_json_if_there(directory, said)
        name = unpacked_name(path.name)
        records = [record for record in (_records if said == RECORDS else _models)(content) if record.name == name]
    if not records:
        raise ModelImportError(f"{said} does not name {name}")
    sums = {record.sha256 for record in records}
    if None in sums:
        return records
    found = sum_of_content(read_packed(path)).sha256
    if found not in sums:
        raise ModelImportError(f"{path.name} is damaged, or of another model: its sum is none that {said} has for it")
    return [record for record in records if record.sha256 == found]


def _records(content: dict[str, Any]) -> Iterator[Record]:
    for entry in content["data"]:
        source, target = (entry.get(key) or entry[older] for key, older in LANGUAGES)
        attachment = entry.get("attachment") or {}
        yield Record(entry["name"], source, target, entry.get("decompressedHash") or attachment.get("hash"))


def _models(content: dict[str, Any]) -> Iterator[Record]:
    for direction, models in content["models"].items():
        source, _, target = direction.partition("-")
        for model in models:
            languages = (model.get("sourceLanguage", source), model.get("targetLanguage", target))
            for file in model["files"].values():
                name = unpacked_name(PurePosixPath(file["path"]).name)
                yield Record(name, *languages, file.get("uncompressedHash"))
