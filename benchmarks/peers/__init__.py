"""Servers that attend is compared with."""
