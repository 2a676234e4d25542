"""Definitions of reductions over dims, positions of extrema, and running sums."""
