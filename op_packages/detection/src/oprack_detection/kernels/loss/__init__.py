"""Kernels of losses of detectors."""
