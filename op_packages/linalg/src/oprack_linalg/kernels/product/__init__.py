"""Kernels of products and powers of matrices."""
