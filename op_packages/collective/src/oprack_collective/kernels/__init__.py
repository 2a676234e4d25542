"""Kernels of the ops of this pack."""
