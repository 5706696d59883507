"""Amounts and names in texts: how languages write them, and whether a translation has them."""
