"""Op pack of quantization: fake quantization, scales, and tables of quantized numbers."""
