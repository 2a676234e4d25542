"""Kernels of ops of two sparse tensors, element by element."""
