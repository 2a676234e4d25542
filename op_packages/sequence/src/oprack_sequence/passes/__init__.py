"""Passes of this pack."""
