"""Kernels of updates of many parameters at once."""
