"""Definitions of region pooling."""
