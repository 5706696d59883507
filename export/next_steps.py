"""What to do with a new artifact: its precision, how it is served, and a request that it answers."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from export.precedence import answered_requests
from export.texts import TEXTS, texts_in
from manifest.schema import NO_LANGUAGE, Language, Manifest
from model.inventory import nearness_of

SERVED = Path("artifacts")
"""The folder that is served by default."""
PROGRAM = "attend"
"""Name of the program of the package. A clone has `make` instead."""
EXAMPLE = 2
"""Index of the sentence that examples have."""
OF_PAIRS = "entailment"
"""A label that only pairs of texts have. Most classifiers of single texts could read pairs too."""
TWO_TEXTS = ("Two cats sleep on the sofa.", "A dog runs along the beach.")


def next_steps(manifest: Manifest, out: Path) -> str:
    """Return what precision an artifact has, which requests it answers unnamed, and commands to serve and ask it."""
    folder, exact = shlex.quote(str(out.parent)), "PRECISION=fp32"
    serve = "make serve" if out.parent == SERVED else f"ATTEND_ARTIFACTS={folder} make serve"
    if Path(sys.argv[0]).stem == PROGRAM:
        serve, exact = f"attend serve {folder}", "--precision fp32"
    path, body = _request(manifest)
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    near = nearness_of(manifest)
    told = f" (near the original: {near})" if near else ""
    other = "" if manifest.precision == "fp32" else f"; {exact} keeps the numbers of the original"
    answers = answered_requests(manifest, out)
    return (
        f"{manifest.name} is in {manifest.precision}{told}{other}.\n"
        + (f"{answers}\n" if answers else "")
        + "Serve it, then ask it:\n"
        f"  {serve}\n"
        f"  curl -s localhost:8000/{path} -H 'content-type: application/json' -d {data}"
    )


def _request(manifest: Manifest) -> tuple[str, dict[str, Any]]:
    name, text = {"model": manifest.name}, TEXTS["en"][EXAMPLE]
    if manifest.task == "translation":
        source, target = _direction(manifest)
        if target.code == NO_LANGUAGE:
            prompt = next(iter(manifest.prompts), None)
            task = {"text": f"summarize: {text}"} if prompt is None else {"text": text, "prompt": prompt}
            return "translate", task | name
        text = (texts_in(source.code) or ("...",) * (EXAMPLE + 1))[EXAMPLE]
        return "translate", {"text": text, "source": source.code, "target": target.code} | name
    if manifest.task == "embedding":
        return "embed", {"text": text} | name
    if manifest.pairs and len(manifest.labels) == 1:
        return "rerank", {"query": "Which animals sleep?", "texts": TWO_TEXTS} | name
    if manifest.pairs and any(label.lower() == OF_PAIRS for label in manifest.labels):
        return "classify", {"text": TWO_TEXTS[0], "text_pair": TWO_TEXTS[1]} | name
    return "classify", {"text": text} | name


def _direction(manifest: Manifest) -> tuple[Language, Language]:
    """Return a source and a target, if possible in languages that we have sentences in, English first."""

    def rank(language: Language) -> int:
        texts = texts_in(language.code)
        return next((i for i, known in enumerate(TEXTS.values()) if known == texts), len(TEXTS))

    source = min(manifest.sources, key=rank)
    others = [language for language in manifest.targets if language.code != source.code]
    return source, min(others or manifest.targets, key=rank)
