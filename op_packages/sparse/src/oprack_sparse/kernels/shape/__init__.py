"""Kernels of ops that move elements."""
