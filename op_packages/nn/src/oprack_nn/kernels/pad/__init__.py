"""Kernels of padding."""
