"""Find kept spans, tags and marks in a text, and place them in its translation."""
