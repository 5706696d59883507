"""Training rows made by rewriting corpora, in forms that the corpora lack."""
