"""Kernels of numbers that say something of a matrix."""
