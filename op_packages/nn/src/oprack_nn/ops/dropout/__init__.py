"""Definitions of dropout."""
