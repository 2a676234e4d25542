"""Kernels in NumPy, most of them for CuPy as well."""
