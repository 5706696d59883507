"""Texts as sentences and tokens, and back; what is no language is taken out of a text, and put back afterwards."""
