"""Kernels, imported on the first use of their op."""
