"""Formats of texts: HTML, XML and Markdown become passages, and tags and marks go back where the aligned words went."""
