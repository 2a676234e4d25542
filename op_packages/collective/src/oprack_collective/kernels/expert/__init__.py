"""Kernels of ops for mixtures of experts, each on a rank of its own."""
