"""Diagonals: read, written, and made matrices of."""
