"""What a checkpoint is worth: scores, failure cases, the model card."""
