"""Kernels of proposals of regions."""
