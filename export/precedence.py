"""Which requests without a model's name a new artifact answers, among the artifacts beside it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

from manifest.file import ManifestError, read_manifest
from manifest.layout import MANIFEST
from manifest.precedence import better_first, earlier_first
from manifest.schema import ANY_LANGUAGE, NO_LANGUAGE, Manifest

NAMED = 3
"""Most directions that are named; more are counted."""
Request = str | tuple[str, str]
"""A kind of request: a route, or the two languages of a translation."""


def answered_requests(manifest: Manifest, out: Path) -> str | None:
    """Return a sentence that says what the artifact at `out` answers from now on; None if only its name chooses it."""
    others = [*_manifests_beside(out)]
    taken: dict[str | None, list[Request]] = defaultdict(list)
    left: dict[str, list[Request]] = defaultdict(list)
    for request in sorted(requests_of(manifest), key=str):
        before = _first(request, others)
        if _first(request, [*others, manifest]) is manifest:
            taken[before.name if before else None].append(request)
        elif before is not None:
            left[before.name].append(request)
    parts = [f"{_listed(requests)} {f'in place of {name}' if name else 'alone'}" for name, requests in taken.items()]
    if parts:
        answer = f"It answers requests that name no model: {'; '.join(parts)}."
    elif left:
        why = "" if any(manifest.evaluation.values()) else ", since it has no scores"
        parts = [f"{name} goes on with {_listed(requests)}" for name, requests in left.items()]
        answer = f"It answers only requests that name it{why}: {'; '.join(parts)}."
    else:
        return None
    return f"{answer} ATTEND_MODELS, a list of models, puts another one first." if left or {*taken} - {None} else answer


def _manifests_beside(out: Path) -> Iterator[Manifest]:
    for path in sorted(out.parent.glob(f"*/{MANIFEST}")):
        if path.parent.name != out.name and not path.parent.name.startswith("."):
            with suppress(ManifestError, OSError):  # the service says at its start what is wrong
                yield read_manifest(path.parent)


def _first(request: Request, manifests: Iterable[Manifest]) -> Manifest | None:
    able = [manifest for manifest in manifests if request in requests_of(manifest)]
    return min(able, key=better_first if isinstance(request, tuple) else earlier_first, default=None)


def requests_of(manifest: Manifest) -> set[Request]:
    """Return the requests that a model can answer."""
    if manifest.task == "embedding":
        return {"/embed"}
    if manifest.task == "classification":
        if not manifest.pairs:
            return {"/classify"}
        return {"/rerank"} if len(manifest.labels) == 1 else {"/classify", "/classify with `text_pair`"}
    targets = [form_of(target.code) for target in manifest.targets if target.code != NO_LANGUAGE]
    return {
        (source_form, target_form)
        for source_form, target_form in product((form_of(source.code) for source in manifest.sources), targets)
        if source_form != target_form
    }


def form_of(code: str) -> str:
    """Return the language and unusual script of a model's code: the same for fr, fra, fra_Latn and fr_XX. Codes that
    name no language stay."""
    try:
        known = Language.get(code).prefer_macrolanguage()
    except LanguageTagError:
        return code
    language = known.language
    if language in (None, ANY_LANGUAGE, NO_LANGUAGE) or not known.is_valid():
        return code
    script, likely = known.maximize().script, Language.get(language).maximize().script
    return language if script in (likely, "Hang") else f"{language}-{script}"  # Hang is part of Kore, the likely script


def _listed(requests: list[Request]) -> str:
    directions = [f"{request[0]}-{request[1]}" for request in requests if isinstance(request, tuple)]
    routes = [request for request in requests if isinstance(request, str)]
    if len(directions) > NAMED:
        return f"{len(directions):,} directions of /translate"
    return ", ".join(routes or [f"/translate {direction}" for direction in directions])
