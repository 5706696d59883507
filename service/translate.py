"""`attend translate FILE`, or `python -m service.translate FILE`: translate a file with the models here.

No server runs. Files are translated by the same code as documents of clients.
"""

import argparse
import asyncio
import errno
import math
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from service.access.ownership import ANYBODY
from service.base.configuration import read_settings
from service.base.errors import RequestError, StartRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.documents.contents import ReadOptions
from service.documents.kinds import KINDS_BY_NAME, LISTED_KINDS
from service.front.assembly import directions_of, load_catalog
from service.front.directions import AUTO, PlannedRoute
from service.front.models import Models, planned_route
from service.front.serving import Serving, proven
from service.glossaries.entries import read_file
from service.glossaries.store import Glossaries
from service.jobs.reading import DocumentReader
from service.jobs.translation import DocumentTranslator, refuse_long_texts, sample_of
from service.jobs.worker import MAX_UNPACKED_RATIO
from service.memories.store import Memories
from service.schemas.requests import DocumentOptions, TranslateRequest
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.text.languages import english_name

STANDARD_INPUT = "-"
PROGRESS_S = 5.0
"""Pause between two lines of progress where there is no terminal."""


def run(arguments: Sequence[str], program: str = "python -m service.translate") -> None:
    """Translate a file, and write the translation. Exit with status 1 and one sentence if that fails."""
    options = _parser(program).parse_args(arguments)
    try:
        translated = asyncio.run(_translated(options, _settings(options.model)))
        _write(translated)
    except (StartRefused, RequestError) as error:
        sys.exit(f"cannot translate {options.file}: {error}")
    except FileExistsError as error:
        sys.exit(f"{error.filename} exists: --overwrite replaces it, --output names another file")
    except OSError as error:
        sys.exit(f"cannot translate: {error.filename or options.file}: {error.strerror}")


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description=f"Translate a file: {LISTED_KINDS}. Its formatting stays. "
        "The models are those that the service serves: of the folder ATTEND_ARTIFACTS, by default artifacts.",
    )
    parser.add_argument("file", metavar="FILE", help="file to translate; -: standard input, to standard output")
    language: dict[str, Any] = {"type": _not_empty, "metavar": "LANGUAGE"}
    parser.add_argument("--to", "--target", dest="target", **language, help="language to translate to")
    parser.add_argument(
        "--from", "--source", dest="source", **language, help="language of the file; by default it is detected"
    )
    parser.add_argument("--model", type=_not_empty, help="model to translate with; the others are not loaded")
    described = DocumentOptions.model_fields
    parser.add_argument("--only-missing", action="store_true", help=described["only_missing"].description)
    parser.add_argument(
        "--columns", type=lambda names: names.split(","), default=(), help=described["columns"].description
    )
    parser.add_argument("--glossary", type=Path, metavar="FILE", help="terms to use: a .csv, .tsv, .tbx or .tmx")
    parser.add_argument("--output", type=Path, metavar="PATH", help="file to write; by default FILE.LANGUAGE.ENDING")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    return parser


def _not_empty(value: str) -> str:
    """A shell gives an empty value where a variable is not set."""
    if not value:
        raise argparse.ArgumentTypeError("must not be empty")
    return value


def _settings(model: str | None) -> Settings:
    """Return the settings of the environment. By default only warnings are logged. Raises StartRefused."""
    settings = read_settings()
    changes: dict[str, object] = {} if "log_level" in settings.model_fields_set else {"log_level": "warning"}
    if model is not None:
        changes["models"] = (model,)
    settings = settings.model_copy(update=changes)
    settings.log.configure()
    return settings


class _Translated(NamedTuple):
    """A translated file.

    Attributes:
        path: where to write it; None is standard output.
        route: its languages, and the models that translated it.
    """

    path: Path | None
    content: bytes
    route: PlannedRoute


async def _translated(options: argparse.Namespace, settings: Settings) -> _Translated:
    """Translate a file with the models of its two languages; no others are loaded.

    Raises:
        StartRefused: the models cannot be loaded.
        RequestError: the file cannot be read, or no model translates between its languages.
        OSError: a file cannot be read, or there is one where the translation would be written.
    """
    name, data = _read(options.file)
    reader = DocumentReader(MAX_UNPACKED_RATIO * settings.max_document_bytes)
    reading = ReadOptions(
        source=options.source, target=options.target, only_missing=options.only_missing, columns=options.columns
    )
    with tempfile.TemporaryDirectory(prefix="attend-translate-") as folder:
        database = Database(Path(folder))
        glossaries = Glossaries(database)
        try:
            read = await reader.read(name, data, options=reading)
            refuse_long_texts(read, settings.max_text_characters)
            source = options.source or read.source or AUTO
            request = TranslateRequest(text=["-"], source=source, target=options.target, model=options.model)
            directions = directions_of(settings, options.model)
            plan = await planned_route(directions, sample_of(read, request), settings.max_timeout_s)
            pair = plan.source, plan.target
            path = _path(options, KINDS_BY_NAME[read.kind].translated_name(name, plan.target))
            reading = replace(reading, source=plan.source, target=plan.target)
            changes = {"source": plan.source, "target": plan.target, "glossary_id": None}
            if options.glossary is not None:
                changes["glossary_id"] = await _stored(options.glossary, pair, glossaries)
            request = request.model_copy(update=changes)
            read = await reader.read(name, data, read.kind, reading)
            translations = list(read.texts)
            if plan.route:
                settings = settings.model_copy(update={"models": _names(plan)})
                show = _Progress(sum(map(len, set(read.texts))))
                async with _models(settings, glossaries, Memories(database)) as models:
                    translator = DocumentTranslator(models, settings)
                    translations = (await translator.texts(read, request, math.inf, show)).texts
            translation = await reader.write(read.kind, data, translations, reading)
        finally:
            await reader.stop()
    return _Translated(path, translation, plan)


def _read(file: str) -> tuple[str, bytes]:
    """Return the name and the content of a file. Plain text has no sign of its own, so standard input counts as it."""
    if file == STANDARD_INPUT:
        return "input.txt", sys.stdin.buffer.read()
    return Path(file).name, Path(file).read_bytes()


@asynccontextmanager
async def _models(settings: Settings, glossaries: Glossaries, memories: Memories) -> AsyncIterator[Models]:
    """Load the models, and stop them at the end. Raises StartRefused."""
    serving = Serving(settings.probe_interval_s)
    catalog = await asyncio.to_thread(load_catalog, settings, Metrics())
    try:
        await serving.replace(catalog)
        await proven(catalog)
        yield Models(serving, settings, glossaries, memories)
    finally:
        await serving.stop(0.0)


async def _stored(file: Path, pair: tuple[str, str], glossaries: Glossaries) -> str:
    """Store the terms of a file for two languages, and return the glossary's id. Raises InvalidGlossary, OSError."""
    entries = read_file(file.name, file.read_bytes(), *pair)
    return (await in_thread(glossaries.create, ANYBODY, file.name, {pair: entries})).id


class _Progress:
    """Shows the progress on standard error: on a terminal always, elsewhere a line every few seconds."""

    def __init__(self, n_characters: int) -> None:
        self._n_characters = n_characters
        self._shown_at = time.monotonic()

    def __call__(self, n_translated: int) -> None:
        share = min(1.0, n_translated / max(1, self._n_characters))
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{share:4.0%}{'' if share < 1 else chr(10)}")
        elif share < 1 and time.monotonic() >= self._shown_at + PROGRESS_S:
            sys.stderr.write(f"{share:4.0%} translated\n")
            self._shown_at = time.monotonic()
        sys.stderr.flush()


def _path(options: argparse.Namespace, name: str) -> Path | None:
    """Return where to write the translated file, by default beside the original one. None is standard output.

    Raises:
        FileExistsError: a file is there already.
    """
    if options.output is None and options.file == STANDARD_INPUT:
        return None
    path: Path = options.output or Path(options.file).with_name(name)
    if path.exists() and not options.overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    return path


def _write(translated: _Translated) -> None:
    """Write a translation, and say what was written. Raises OSError."""
    path, content, plan = translated
    if path is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path.write_bytes(content)
    models = f", by {' and '.join(_names(plan))}" if plan.route else ""
    sys.stdout.write(f"{path}: {english_name(plan.source)} to {english_name(plan.target)}{models}\n")


def _names(plan: PlannedRoute) -> tuple[str, ...]:
    return tuple(translator.manifest.name for translator, _ in plan.route)


if __name__ == "__main__":
    run(sys.argv[1:])
