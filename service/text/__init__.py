"""Texts as sentences and tokens, and back."""
