"""Embeddings of ids from any vocabulary, hashed into a table of fixed size."""
