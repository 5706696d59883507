"""Benchmarks of attend and its peers, with the same weights, on the same machine, side by side in one run."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: it would send telemetry
