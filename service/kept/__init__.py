"""What a translation must keep as it is: the spans, their placeholders, and the way back into the translation."""
