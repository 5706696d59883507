"""What a translation must keep: kept spans, tags and marks, and where each of them goes in the translation."""
