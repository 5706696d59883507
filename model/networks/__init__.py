"""The networks of the lecture, as PyTorch modules."""
