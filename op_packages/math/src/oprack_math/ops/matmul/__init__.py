"""Definitions of products of matrices."""
