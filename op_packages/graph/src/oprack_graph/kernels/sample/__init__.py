"""Samples of the neighbours of nodes."""
