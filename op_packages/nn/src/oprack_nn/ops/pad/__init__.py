"""Definitions of padding."""
