"""Splits texts into sentences and tokens, and joins them again; languages and scripts."""
