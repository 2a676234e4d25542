"""Kernels of order statistics and of counts."""
