"""Everything that uses ONNX Runtime; no file outside this package imports it."""
