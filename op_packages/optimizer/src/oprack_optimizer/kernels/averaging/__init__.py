"""Kernels of averages of parameters."""
