"""Kernels of ops that make sparse tensors, and take them apart."""
