"""Layers of losses."""
