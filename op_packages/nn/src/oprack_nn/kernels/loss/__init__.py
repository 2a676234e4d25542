"""Kernels of losses."""
