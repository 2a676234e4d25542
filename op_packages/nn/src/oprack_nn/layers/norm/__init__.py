"""Layers of normalisations."""
