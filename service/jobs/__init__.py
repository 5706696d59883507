"""Translate documents part by part, while their clients ask for the progress. No HTTP."""
