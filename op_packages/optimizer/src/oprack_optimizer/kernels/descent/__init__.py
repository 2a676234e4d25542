"""Kernels of plain gradient descent, also with a proximal step or with noise."""
