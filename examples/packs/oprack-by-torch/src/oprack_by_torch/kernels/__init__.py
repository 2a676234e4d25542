"""Kernels, imported when their op first runs."""
