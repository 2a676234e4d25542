"""Layers of products of matrices."""
