"""Definitions of normalisations."""
