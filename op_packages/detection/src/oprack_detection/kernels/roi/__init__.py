"""Kernels of region pooling."""
