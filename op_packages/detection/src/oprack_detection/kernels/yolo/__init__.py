"""Kernels of YOLO."""
