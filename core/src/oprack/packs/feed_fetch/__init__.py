"""Definitions of the core's own ops."""
