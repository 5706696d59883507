"""Decoding: search and generation, token by token."""
