"""Kernels of ops on the bits of integers."""
