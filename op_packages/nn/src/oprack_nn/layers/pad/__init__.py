"""Layers of padding."""
