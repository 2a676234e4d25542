"""Kernels of non-maximum suppression."""
