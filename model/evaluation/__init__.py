"""Evaluation of checkpoints: scores, failure cases, the model card."""
