"""Definitions of factorizations."""
