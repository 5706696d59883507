"""Checkpoint to artifact directory: flat ONNX graphs with fused attention, a manifest, and the proof of both."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: it would send telemetry
