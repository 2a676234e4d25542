"""Kernels of ops that multiply matrices."""
