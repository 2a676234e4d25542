"""Layers of embeddings."""
