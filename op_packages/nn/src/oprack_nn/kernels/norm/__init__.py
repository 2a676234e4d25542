"""Kernels of normalisations."""
