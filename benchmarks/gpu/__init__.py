"""attend on a GPU: its steps, its engine beside CTranslate2's, its service, and a loop to learn from (docs/gpu.md)."""
