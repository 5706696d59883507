"""The servers that attend is compared with."""
