"""Kernels of anchors and prior boxes."""
