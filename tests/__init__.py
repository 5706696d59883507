import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: it would send telemetry
