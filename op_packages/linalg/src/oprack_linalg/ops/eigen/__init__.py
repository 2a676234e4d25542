"""Definitions of eigenvalues and eigenvectors."""
