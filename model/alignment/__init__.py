"""Which attention heads say what word became which."""
