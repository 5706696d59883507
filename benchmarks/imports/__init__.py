"""Measurements of models that were trained elsewhere."""
