"""Layers of pooling."""
