"""The systems of the lecture, as modules of PyTorch."""
