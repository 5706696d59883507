"""Translation memories: stored translations, found for the same text, or for a similar one."""
