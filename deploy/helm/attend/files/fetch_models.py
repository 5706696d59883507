"""Download archives of models, compare their sums and unpack them: fetch_models.py FOLDER [URL SHA256]..."""

import hashlib
import sys
import tarfile
import tempfile
import urllib.request

folder, *pairs = sys.argv[1:]
for url, expected in zip(pairs[::2], pairs[1::2], strict=True):
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=folder) as file:
        with urllib.request.urlopen(url, timeout=60) as answer:
            while chunk := answer.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != expected:
            sys.exit(f"{url}: sha256 is {digest.hexdigest()}, expected {expected}")
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(folder, filter="data")
