"""Kernels in NumPy."""
