"""Definitions of adam and the rules derived from it."""
