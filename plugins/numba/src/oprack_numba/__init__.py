"""Loops that numba compiles, for machines without oneDNN: kernels of ops of the pack nn."""
