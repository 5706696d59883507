"""From rows of a corpus to a checkpoint."""
