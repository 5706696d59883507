"""The tasks that models do for users: texts in, answers out."""
