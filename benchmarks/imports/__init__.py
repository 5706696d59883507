"""Benchmarks of imported models."""
