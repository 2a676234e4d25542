"""Kernels of what makes complex numbers of real ones, and takes them apart."""
