"""Kernels of products of matrices."""
