"""Kernels of embeddings."""
