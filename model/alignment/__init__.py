"""Choice of the attention heads that align words."""
