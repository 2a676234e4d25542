"""Layers of convolutions."""
