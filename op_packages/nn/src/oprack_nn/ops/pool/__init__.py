"""Definitions of pooling."""
