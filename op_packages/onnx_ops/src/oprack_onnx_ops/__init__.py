"""Op pack of what ONNX has and Fluid lacks."""
