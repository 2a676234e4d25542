"""Kernels of eigenvalues and eigenvectors."""
