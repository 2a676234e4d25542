"""Kernels of sequences against sequences."""
