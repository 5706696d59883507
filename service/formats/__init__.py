"""Formats of texts: HTML is taken apart into passages, and its tags go back where the aligned words went."""
