"""Glossaries that are kept under a name, for requests to use. No HTTP."""
