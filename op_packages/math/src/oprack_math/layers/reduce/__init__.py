"""Layers of reductions over dims and of positions of extrema."""
