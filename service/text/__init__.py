"""Split texts into sentences and tokens, and join them again; languages and scripts."""
