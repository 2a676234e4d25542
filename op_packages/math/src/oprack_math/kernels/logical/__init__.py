"""Kernels of logic on truth values."""
