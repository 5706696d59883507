"""Artifact directory -> HTTP: an inference service for encoder-decoder Transformers on ONNX Runtime.

The rooms, from the top down; imports go down this list only:

    http                  routes, middleware, keys and rates, errors as answers, the server's life
    playground            the page that shows what the service does
    loading, registry     artifacts to engines; the models of a server, and which one serves a request
    tasks                 translation, classification, embedding, attention, alignment
    formats               HTML: taken apart into passages, and put together again
    text                  spans and edits, sentences, tokens, kept spans
    engine                who waits and who runs, the searches, loops and their loader; it knows no text and no HTTP
    runner                sessions, caches and passes: the only room that knows ONNX Runtime
    schemas               what clients send and get
    configuration         what the environment and the command line say
    settings, metrics, contract, artifact, errors, log
"""

import os

__version__ = "0.3.0"

# Before onnxruntime and numpy are imported:
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it would send telemetry
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")  # caches would be touched in pages of 2 MB, for a few rows each
