"""The files of an artifact's directory."""

MANIFEST, WEIGHTS, TOKENIZER = "manifest.json", "weights.safetensors", "tokenizer.json"
VOCABULARY = "vocabulary.json"
"""The ids of pieces, if a model numbers them otherwise than its tokenizer does."""
GRAPHS = {
    "translation": ("encoder.onnx", "decoder_step.onnx", "attention.onnx"),
    "classification": ("classifier.onnx", "attention.onnx"),
    "embedding": ("encoder.onnx", "attention.onnx"),
}
"""The graphs that a task needs; each provider has a folder of them."""
DENSE = "dense.onnx"
"""One more graph, if pooled states go through dense layers."""
