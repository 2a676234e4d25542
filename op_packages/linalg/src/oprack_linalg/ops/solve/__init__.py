"""Definitions of systems of equations."""
