"""Kernels of ops over elements of a row."""
