"""Stored glossaries, which requests name by their ids. This package knows nothing of HTTP."""
