"""Translation of texts, by one model or by two."""
