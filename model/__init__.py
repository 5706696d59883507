"""The Transformer of the lecture "Attention and the Transformer": networks, training, evaluation, imports."""
