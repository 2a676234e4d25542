"""Kernels of ops of networks."""
