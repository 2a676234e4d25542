"""Kernels of attention and its softmax."""
