"""Benchmarks on a GPU: steps, engines and the service (docs/gpu.md)."""
