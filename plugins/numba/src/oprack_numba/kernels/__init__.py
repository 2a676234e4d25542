"""Kernels of the library numba."""
