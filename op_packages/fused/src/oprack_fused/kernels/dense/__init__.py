"""Kernels of products with a bias and an activation, and of pairs of element-wise functions."""
