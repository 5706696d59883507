"""Benchmarks of the lecture's systems, trained on the same data within the same budget."""
