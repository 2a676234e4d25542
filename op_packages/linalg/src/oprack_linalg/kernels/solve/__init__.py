"""Kernels of systems of equations."""
