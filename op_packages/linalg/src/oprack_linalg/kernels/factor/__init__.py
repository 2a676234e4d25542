"""Kernels of factorizations."""
