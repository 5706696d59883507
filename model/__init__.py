"""The Transformer of the lecture "Attention and the Transformer", and its training."""
