"""Documents: a file becomes texts to translate, and a file again with their translations. No HTTP, no models."""
