"""Kernels of sin, cos and tanh."""
