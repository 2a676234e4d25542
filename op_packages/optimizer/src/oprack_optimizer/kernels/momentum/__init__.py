"""Kernels of gradient descent with momentum."""
