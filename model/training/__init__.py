"""Training, from corpora to a checkpoint."""
