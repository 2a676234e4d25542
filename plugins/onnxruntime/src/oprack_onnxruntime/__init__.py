"""ONNX Runtime as an engine: it runs stretches of a model's ops, on machines without oneDNN above all."""
