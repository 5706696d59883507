"""Checkpoint to artifact directory: flat ONNX graphs with fused attention, a manifest, and the proof of both."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: it would send telemetry
# Before torch is imported. Threads that wait would spin: where other programs run too, that takes several times the
# processor time of the work itself.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
