"""Kernels of ops that give whole numbers."""
