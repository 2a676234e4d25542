"""Kernels of tables of quantized numbers."""
