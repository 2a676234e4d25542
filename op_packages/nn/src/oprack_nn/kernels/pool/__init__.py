"""Kernels of pooling."""
