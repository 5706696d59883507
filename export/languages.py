"""`attend fetch --languages en,fr,uk`: bring the recommended models that translate between languages, each once.
`attend serve --languages` begins with it.

A model that is not there needs torch to be imported and exported. What is there needs nothing but its manifest, so that
a machine without torch and without a network serves it.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path

from langcodes import Language

from export.precedence import form_of, requests_of
from manifest.file import ManifestError, read_manifest
from manifest.layout import MANIFEST
from manifest.precedence import better_first
from manifest.schema import Manifest
from model.importing.recommended import SIZES, Recommended, best_model, listed_directions

PIVOT = "en"
"""The service translates through this language where no model has a direction."""
CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)
ELSEWHERE = (
    "`HF_ENDPOINT` names another hub, `HTTPS_PROXY` a proxy. On a machine that reaches one, "
    "attend pack writes a file with models, which attend unpack reads without a network"
)
HELP = "docs/bring-your-model.md lists models; attend import FROM brings one"


def run(arguments: Sequence[str], program: str = "attend fetch") -> None:
    """Bring the models that the arguments ask for."""
    parser = argparse.ArgumentParser(prog=program, description="Bring good models of languages, to serve them.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    bring_languages(options.languages, options.size, options.artifacts)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which models to bring, and where to."""
    sizes = ", ".join(f"{size} up to {most / 1e6:,.0f} M" for size, most in SIZES.items())
    parser.add_argument(
        "--languages", type=language_codes, required=True, metavar="en,fr,uk", help="two languages or more"
    )
    parser.add_argument("--size", choices=SIZES, default="medium", help=f"parameters of a model: {sizes}")
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"), help="folder of the models")


def language_codes(text: str) -> list[str]:
    """Return the codes of languages in their usual forms. Raises ArgumentTypeError: one is no code, or they are less
    than two."""
    codes = list(dict.fromkeys(code.strip() for code in text.split(",")))
    for code in codes:
        if not CODE.fullmatch(code) or not Language.get(code).is_valid():
            raise argparse.ArgumentTypeError(f"{code!r} is no code of a language, such as fr")
    forms = list(dict.fromkeys(map(form_of, codes)))
    if len(forms) < 2:
        raise argparse.ArgumentTypeError("name two languages or more, with commas between them")
    return forms


def bring_languages(languages: Sequence[str], size: str, artifacts: Path) -> list[Path]:
    """Bring a model for each direction that has none, and say which one serves it. Return the folders of these models.

    A model that is listed for the direction comes first, then one that is here and not small, then one of the hub that
    has the codes of both languages in its name, and at last a small one.

    Args:
        size: the largest size of a model to bring, of `SIZES`.
    """
    serving, missing = dict[Path, None](), list[str]()
    for source, target in directions_between(languages):
        best = best_model(source, target, size)
        before = _able(source, target, artifacts)
        if best is not None and (best.directions or all(model.is_small for model in before.values())):
            _bring(best, f"{source}-{target}", artifacts, is_needed=not before)
        served = _served(_able(source, target, artifacts), best)
        if served is None:
            missing.append(_missing(source, target, best))
        else:
            serving[served] = None
            _say(f"{source}-{target}: {served.name}")
    for sentence in missing:
        _say(sentence)
    return [*serving]


def directions_between(languages: Sequence[str]) -> list[tuple[str, str]]:
    """Return the directions that need a model of their own: those of English, those for which one is listed, and the
    two through English of any other."""
    needed, listed = dict[tuple[str, str], None](), listed_directions()
    for source, target in permutations(languages, 2):
        is_direct = PIVOT in (source, target) or f"{source}-{target}" in listed
        needed |= dict.fromkeys([(source, target)] if is_direct else [(source, PIVOT), (PIVOT, target)])
    return [*needed]


def _bring(best: Recommended, direction: str, artifacts: Path, is_needed: bool) -> None:
    """Bring a recommended model, unless it is there, or the hub does not have it. Where the hub cannot be reached, the
    process ends with a sentence if no other model has the direction."""
    if not any(_is_import_of(best, manifest) for _, manifest in _artifacts(artifacts)):
        _say(f"{direction}: fetching {best.bring}, {best.size} parameters, licence {best.licence} ({best.page})")
        from export.bringing import HubError, NotOnHubError, bring  # imports torch

        try:
            bring(best.bring, artifacts)
        except NotOnHubError:
            _say(f"{direction}: the hub has no {best.bring}")
        except HubError as error:
            _say(f"{direction}: cannot bring {best.bring}: {error}. {ELSEWHERE}")
            if is_needed:
                sys.exit(1)


def _served(able: Mapping[Path, Manifest], best: Recommended | None) -> Path | None:
    """Return the folder of the recommended model, or else of the one that answers requests without a name; None if
    there is none."""
    of_best = [folder for folder, model in able.items() if best is not None and _is_import_of(best, model)]
    return of_best[0] if of_best else min(able, key=lambda folder: better_first(able[folder]), default=None)


def _able(source: str, target: str, artifacts: Path) -> dict[Path, Manifest]:
    return {folder: model for folder, model in _artifacts(artifacts) if (source, target) in requests_of(model)}


def _is_import_of(best: Recommended, manifest: Manifest) -> bool:
    return manifest.origin is not None and manifest.origin.source == best.bring


def _artifacts(folder: Path) -> Iterator[tuple[Path, Manifest]]:
    """Yield the artifacts of a folder whose files are all there."""
    for path in sorted(folder.glob(f"[!.]*/{MANIFEST}")):
        with suppress(ManifestError, OSError):  # the service says at its start what is wrong
            manifest = read_manifest(path.parent)
            if all((path.parent / name).stat().st_size == file.bytes for name, file in manifest.files.items()):
                yield path.parent, manifest


def _missing(source: str, target: str, tried: Recommended | None) -> str:
    others = ((size, best_model(source, target, size)) for size in SIZES)
    hint = next((f"--size {size} brings {other.bring}; " for size, other in others if other and other != tried), "")
    of_hub = f", and the hub has no {tried.bring}" if tried else ""
    return f"{source}-{target}: no model translates it here{of_hub}; {hint}{HELP}"


def _say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    run(sys.argv[1:], "python -m export.languages")
