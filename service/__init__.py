"""Artifact directory -> HTTP: an inference service for encoder-decoder Transformers on ONNX Runtime.

A request walks through these files, top to bottom: routes (validate) -> translation or classification (text to
sequences) -> tokenization -> engine (one queue, one worker thread, one future per request) -> scheduler (waiting,
running, admission by padded tokens) -> runner (ONNX Runtime) -> back through the future.
"""
