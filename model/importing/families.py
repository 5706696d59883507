"""Model families that can be imported, and reasons why others cannot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import ValidationError

from model.checkpoint import build_model
from model.importing import argos, bart, bert, firefox, m2m100, marian, marian_npz, sentence_encoder, t5
from model.importing.hugging_face import CONFIG, architectures, read_json_if_there
from model.importing.imported import ImportedModel, ModelImportError, Options, in_words
from model.importing.sources import open_source_files
from model.importing.writing import refuse_other_model, refuse_what_is_no_import, write_checkpoint
from model.weights import to_known_type


@dataclass(frozen=True)
class Family:
    """A kind of models that is imported in one way.

    Attributes:
        name: name that users know.
        recognizes: tells whether a directory has such a model.
        import_directory: imports the model of a directory; raises ModelImportError.
    """

    name: str
    recognizes: Callable[[Path], bool]
    import_directory: Callable[[Path, Options], ImportedModel]


FAMILIES = (
    Family("MarianMT (opus-mt-*)", marian.recognizes, marian.import_directory),
    Family("M2M100 and NLLB-200", m2m100.recognizes, m2m100.import_directory),
    Family("T5, Flan-T5, mT5, UMT5 and MADLAD-400", t5.recognizes, t5.import_directory),
    Family("mBART-50 and BART", bart.recognizes, bart.import_directory),
    Family("BERT, DistilBERT, RoBERTa and XLM-RoBERTa as classifiers of texts", bert.recognizes, bert.import_directory),
    Family("the same as encoders of sentences", sentence_encoder.recognizes, sentence_encoder.import_directory),
    Family("OPUS-MT in Marian's own format (.npz)", marian_npz.recognizes, marian_npz.import_directory),
    Family("Firefox's translators (Bergamot, .bin)", firefox.recognizes, firefox.import_directory),
    Family("Argos Translate (.argosmodel)", argos.recognizes, argos.import_directory),
)

UNSUPPORTED: Mapping[str, str] = {
    "modernbert": "its positions are rotary, its layers have no biases, and most see only their neighbours",
    "mpnet": "its attention has a bias by distance",
}
"""Reasons why a model_type is not supported."""


def import_model(
    source: str, checkpoint: Path, options: Options, revision: str | None = None, overwrite: bool = False
) -> ImportedModel:
    """Import a model that was trained elsewhere; `checkpoint` appears only if everything succeeded.

    An earlier import of the same model is replaced.

    Args:
        source: a directory, an archive, or an id of Hugging Face's hub.
        revision: branch, tag or commit on the hub; None is the newest.
        overwrite: whether an earlier import of another model is replaced too.

    Raises:
        ModelImportError: the source is missing, damaged, incomplete or not supported, or something else is at
            `checkpoint`.
    """
    refuse_what_is_no_import(checkpoint)
    with open_source_files(source, revision) as found:
        name = found.name if options.name is None else options.name
        _check_name(name)
        imported = import_directory(found.directory, replace(options, name=name))
        provenance = imported.config.provenance
        assert provenance is not None, "every family sets it"
        provenance = provenance.model_copy(update={"source": found.said, "revision": found.revision})
        imported = replace(imported, config=imported.config.model_copy(update={"provenance": provenance}))
        if not overwrite:
            refuse_other_model(imported, checkpoint)
        write_checkpoint(imported, checkpoint)
    return imported


def _check_name(name: str) -> None:
    """Refuse names that cannot be directories."""
    if name in ("", ".", "..") or "/" in name:
        raise ModelImportError(f"`--name` {name!r} must be the name of a directory")


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory with the family that recognizes it.

    Raises:
        ModelImportError: no family does, or the model is incomplete or damaged.
    """
    for family in FAMILIES:
        try:
            if not family.recognizes(directory):
                continue
            imported = family.import_directory(directory, options)
        except ModelImportError:
            raise
        except ValidationError as error:
            raise ModelImportError(f"wrong settings: {in_words(error)}") from error
        except Exception as error:  # a file has something that no library expects
            raise ModelImportError(f"it cannot be read as {family.name}: {in_words(error)}") from error
        _check_shapes(imported)
        return replace(imported, weights={name: to_known_type(one) for name, one in imported.weights.items()})
    raise ModelImportError(
        f"{_describe_directory(directory)}; supported are {', '.join(family.name for family in FAMILIES)}"
    )


def _check_shapes(imported: ImportedModel) -> None:
    """Check that weights have the shapes of the configuration, before anything is written."""
    with torch.device("meta"):
        expected = {name: tensor.shape for name, tensor in build_model(imported.config).state_dict().items()}
    for name, shape in expected.items():
        found = imported.weights.get(name)
        if found is None or found.shape != shape:
            what = "is missing" if found is None else f"is {tuple(found.shape)}"
            raise ModelImportError(f"weights do not match the configuration: {name} {what}; it must be {tuple(shape)}")


def _describe_directory(directory: Path) -> str:
    config = read_json_if_there(directory, CONFIG)
    kind = config.get("model_type")
    if not kind:
        return f"no known model ({CONFIG} is missing or has no `model_type`)"
    named = "/".join(architectures(config)) or "a model"
    reason = f": {UNSUPPORTED[kind]}" if kind in UNSUPPORTED else ""
    return f"{named} (`model_type` {kind}) is not supported{reason}"
