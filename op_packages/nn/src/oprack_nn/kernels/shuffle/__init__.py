"""Kernels of rearrangements of channels and pixels."""
