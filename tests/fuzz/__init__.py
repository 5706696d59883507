"""Fuzzing of every reader of foreign bytes: `make fuzz`.

A target (`targets/`) is a reader with inputs to begin with. An engine changes them at random, guided by coverage if
atheris is installed. What it finds is mended, and the input stays in `corpus/`, which `test_corpus.py` replays.
"""
