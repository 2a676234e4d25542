"""Sequences ordered by length, for loops over their places."""
