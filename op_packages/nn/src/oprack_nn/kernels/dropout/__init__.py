"""Kernels of dropout."""
