"""Layers of the ops of this pack."""
