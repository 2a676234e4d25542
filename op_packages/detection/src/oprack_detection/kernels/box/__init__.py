"""Kernels of boxes: coding, clipping, overlap."""
