"""Layers of resampling."""
