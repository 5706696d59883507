"""What several dialects use: languages, texts, files, and places of keys."""
