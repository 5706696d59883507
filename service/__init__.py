"""Artifact directory -> HTTP: an inference service for encoder-decoder Transformers on ONNX Runtime.

docs/architecture.md has the rooms, and which imports which.
"""

import os

__version__ = "0.3.0"

# Before onnxruntime and numpy are imported:
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it would send telemetry
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")  # caches would be touched in pages of 2 MB, for a few rows each
