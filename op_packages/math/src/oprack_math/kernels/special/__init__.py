"""Kernels of special functions."""
