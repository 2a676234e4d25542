"""Definitions of proposals of regions."""
