"""Writing with a model, token by token."""
