"""Kernels of the pack's ops."""
