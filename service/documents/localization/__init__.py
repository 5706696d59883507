"""The messages of programs, in the formats of localization."""
