"""What the models do for their users: texts in, answers out."""
