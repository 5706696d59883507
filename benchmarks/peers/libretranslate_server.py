"""LibreTranslate in its own environment, serving our weights as an Argos package in CTranslate2's format.

By default it would download a neural sentence splitter. The package has spaCy's rules instead, which LibreTranslate
also supports, which need no download and cost less.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.conversion import convert
from benchmarks.models import weights
from benchmarks.peers import sentencepiece_model
from benchmarks.workspace import ROOT, made_from, workspace
from model.checkpoint import load_checkpoint
from model.networks.transformer import Transformer

REQUIREMENTS = ("libretranslate==1.9.6", "spacy==3.8.18", "gunicorn==27.0.1")
VENV = "libretranslate"


def install() -> Path:
    """Return the programs of its virtual environment, which the first call creates."""
    venv = workspace(VENV)
    if not (venv / "bin" / "libretranslate").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", *REQUIREMENTS], check=True)
    return venv / "bin"


def environment(checkpoint: Path) -> dict[str, str]:
    """Return the environment in which LibreTranslate finds only our package."""
    home = workspace("libretranslate-data")
    data, cache = home / "share" / "argos-translate", home / "cache" / "argos-translate"
    files = (Path(__file__), ROOT / "benchmarks" / "conversion.py", Path(sentencepiece_model.__file__))
    made_from([*weights(checkpoint), *files], data / "packages", lambda directory: _build(checkpoint, directory))
    (data / "index.json").write_text("[]")  # nothing can be downloaded
    splitter = cache / "spacy" / "senter" / "model"  # looks like a downloaded splitter; the package's own is used
    splitter.parent.mkdir(parents=True, exist_ok=True)
    splitter.touch()
    return {
        **os.environ,
        "XDG_DATA_HOME": str(home / "share"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "ARGOS_CHUNK_TYPE": "SPACY",
        "ARGOS_COMPUTE_TYPE": "int8",
        "ARGOS_INTRA_THREADS": "1",
        "LT_DISABLE_WEB_UI": "true",
        "LT_DISABLE_FILES_TRANSLATION": "true",
    }


def _build(checkpoint: Path, packages: Path) -> None:
    """Write the package for English to French, and again under another name: with fewer than two packages
    LibreTranslate searches for others."""
    for old in packages.iterdir():
        shutil.rmtree(old)
    package = packages / "translate-en_fr"
    loaded = load_checkpoint(checkpoint)
    assert isinstance(loaded.model, Transformer)
    serialized, pieces = sentencepiece_model.from_tokenizer(loaded.tokenizer)
    convert(loaded.model, pieces, package / "model", "int8", add_source_eos=True)
    (package / "sentencepiece.model").write_bytes(serialized)
    python = workspace(VENV) / "bin" / "python"
    save_splitter = f"import spacy; spacy.blank('en').to_disk({str(package / 'spacy')!r})"
    subprocess.run([str(python), "-c", save_splitter], check=True)
    shutil.copytree(package, packages / "translate-fr_en")
    languages = {"en": "English", "fr": "French"}
    for source, target in (("en", "fr"), ("fr", "en")):
        metadata = {
            "package_version": "1.0",
            "argos_version": "1.9",
            "from_code": source,
            "from_name": languages[source],
            "to_code": target,
            "to_name": languages[target],
        }
        (packages / f"translate-{source}_{target}" / "metadata.json").write_text(json.dumps(metadata))
