"""ONNX for oprack: models are read as Fluid programs, and programs are written as models."""
