"""Definitions of embeddings."""
