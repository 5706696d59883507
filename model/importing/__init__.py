"""Imports models that were trained elsewhere as checkpoints, converting names, sizes and tokenizers."""
