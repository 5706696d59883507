"""ONNX Runtime and all that knows it; no file outside this folder imports it."""
