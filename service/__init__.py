"""Artifact directory -> HTTP: an inference service for encoder-decoder Transformers on ONNX Runtime.

A request walks through these files, top to bottom: routes (validate) -> translation, classification or embedding (text
to sequences) -> tokenization -> pool (the engine that has least to do, perhaps in a worker process) -> engine (one
queue, one thread, one future per request) -> scheduler (waiting, running, admission by padded tokens) -> runner (ONNX
Runtime) -> back through the future.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: it would send telemetry
