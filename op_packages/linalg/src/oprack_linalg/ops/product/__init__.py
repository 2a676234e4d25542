"""Definitions of products and powers of matrices."""
