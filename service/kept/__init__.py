"""Spans that a translation must keep as they are, their placeholders, and the way back into the translation."""
