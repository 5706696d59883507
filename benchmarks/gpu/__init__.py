"""attend on a GPU: its steps, its engine beside CTranslate2's, and its service (docs/gpu.md)."""
