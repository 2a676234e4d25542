"""Layers of comparisons, and whether all is finite."""
