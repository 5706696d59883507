"""Checkpoint to artifact directory: flat ONNX graphs with fused attention, a manifest, and the proof of both."""
