"""Kernels of ops on the nodes of a graph."""
