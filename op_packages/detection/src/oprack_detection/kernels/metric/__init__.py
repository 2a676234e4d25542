"""Kernels of metrics of detectors."""
