"""Model families that can be imported, and reasons why others cannot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch
from pydantic import ValidationError

from model.checkpoint import build_model
from model.config import Config
from model.importing import argos, bart, bert, firefox, m2m100, marian, marian_npz, sentence_encoder, t5
from model.importing.foreign_files import foreign_files, reason_against
from model.importing.hugging_face import CONFIG, architectures, read_json_if_there
from model.importing.imported import (
    ImportedModel,
    MissingTensorError,
    ModelImportError,
    Options,
    in_sentences,
    in_words,
)
from model.importing.published import published_scores
from model.importing.recommended import recommended_scores
from model.importing.sources import open_source_files
from model.importing.weights_files import weights_name
from model.importing.writing import refuse_other_model, refuse_what_is_no_import, write_checkpoint


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
    Family(
        "BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet, DeBERTa-v3 and ModernBERT as classifiers of texts",
        bert.recognizes,
        bert.import_directory,
    ),
    Family("the same as encoders of sentences", sentence_encoder.recognizes, sentence_encoder.import_directory),
    Family("OPUS-MT in Marian's own format (.npz)", marian_npz.recognizes, marian_npz.import_directory),
    Family("Firefox's translators (Bergamot, .bin)", firefox.recognizes, firefox.import_directory),
    Family("Argos Translate (.argosmodel)", argos.recognizes, argos.import_directory),
)

MAX_DEPTH, MAX_DIRECTORIES = 3, 100
"""How deep a directory is searched for a model, and in how many directories of each depth."""


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
    with in_sentences("it cannot be read"), open_source_files(source, revision) as files:
        name = files.name if options.name is None else options.name
        _check_name(name)
        imported = import_directory(files.directory, replace(options, name=name))
        provenance = imported.config.provenance
        assert provenance is not None, "every family sets it"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        told = {"source": files.said, "revision": files.revision, "imported": now}
        provenance = provenance.model_copy(update=told)
        imported = replace(
            imported,
            config=imported.config.model_copy(update={"provenance": provenance}),
            evaluation=published_scores(files.directory, imported.config.model.task) or recommended_scores(source),
        )
        if not overwrite:
            refuse_other_model(imported, checkpoint)
        write_checkpoint(imported, checkpoint)
    return imported


def _check_name(name: str) -> None:
    """A name must be that of a directory."""
    if name in ("", ".", "..") or "/" in name:
        raise ModelImportError(f"`--name` {name!r} must be the name of a directory")


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory with the family that recognizes it. Raises ModelImportError: no family does, or
    the model is incomplete or damaged."""
    directory = _with_model(directory)
    family = _family_of(directory)
    if family is None:
        families = ", ".join(family.name for family in FAMILIES)
        raise ModelImportError(f"{_describe_directory(directory)}; supported are {families}")
    try:
        imported = family.import_directory(directory, options)
    except MissingTensorError as error:
        raise ModelImportError(f"{weights_name(directory)} has no {error.name}") from error
    except ValidationError as error:
        settings = CONFIG if (directory / CONFIG).is_file() else "wrong settings"
        raise ModelImportError(f"{settings}: {in_words(error)}") from error
    except ModelImportError:
        raise
    except (ValueError, RuntimeError) as error:  # of tensors with too few or too many dimensions
        raise ModelImportError(
            f"the tensors of {weights_name(directory)} do not match the configuration: {in_words(error)}"
        ) from error
    _check_shapes(imported, weights_name(directory))
    _check_options(imported.config, options)
    return imported


def _check_options(config: Config, options: Options) -> None:
    model = config.model
    for option, given, is_used in (
        ("--source", options.sources, hasattr(model, "sources")),
        ("--target", options.targets, hasattr(model, "targets")),
        ("--prompt", options.prompts, bool(getattr(model, "prompts", ()))),
        ("--dimensions", options.dimensions, hasattr(model, "cut_to")),
    ):
        if given and not is_used:
            raise ModelImportError(f"`{option}` has no effect on this model: {config.description}")


def _family_of(directory: Path) -> Family | None:
    return next((family for family in FAMILIES if family.recognizes(directory)), None)


def _with_model(directory: Path) -> Path:
    """Return this directory, or else the only one with a model inside it. Raises ModelImportError: there are
    several."""
    level = [directory]
    for _ in range(MAX_DEPTH):
        models = [path_of for path_of in level if _family_of(path_of) is not None]
        if len(models) > 1:
            names = ", ".join(path_of.relative_to(directory).as_posix() for path_of in models)
            raise ModelImportError(f"it has several models ({names}); name the directory of one")
        if models:
            return models[0]
        if any((path_of / CONFIG).is_file() for path_of in level):  # a model that is not supported
            break
        level = [path for path_of in level for path in sorted(path_of.iterdir()) if path.is_dir()][:MAX_DIRECTORIES]
    return directory


def _check_shapes(imported: ImportedModel, file: str) -> None:
    """Weights must have the shapes and kinds of numbers of the configuration, before anything is written."""
    with torch.device("meta"):
        expected_tensors = build_model(imported.config).state_dict()
    for name, expected in expected_tensors.items():
        tensor = imported.weights.get(name)
        if tensor is None or tensor.shape != expected.shape:
            what = "is missing" if tensor is None else f"is {tuple(tensor.shape)}"
            shape = tuple(expected.shape)
            raise ModelImportError(f"{file} does not match the configuration: {name} {what}; it must be {shape}")
        if tensor.is_floating_point() != expected.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise ModelImportError(f"{file} has {kind} numbers in {name}: import the model before quantization")


def _describe_directory(directory: Path) -> str:
    config = read_json_if_there(directory, CONFIG)
    kind = config.get("model_type")
    if not kind:
        return f"no known model ({CONFIG} is missing or has no `model_type`){foreign_files(directory)}"
    named = architectures(config)
    return f"{'/'.join(named) or 'a model'} (`model_type` {kind}) is not supported{reason_against(config, named)}"
