"""Rewrites of graphs for place cuda."""
