"""Layers of dropout."""
