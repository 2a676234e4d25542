"""Definitions of ops that move messages along the edges of a graph."""
