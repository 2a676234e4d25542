"""Kernels of powers, roots, e to the power of X and logarithms."""
