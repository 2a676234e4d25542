"""Layers of logic on truth values."""
