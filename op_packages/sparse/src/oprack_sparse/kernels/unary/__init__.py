"""Kernels of ops of every listed element."""
