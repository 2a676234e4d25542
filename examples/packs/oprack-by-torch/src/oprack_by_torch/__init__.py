"""A kernel by torch."""
