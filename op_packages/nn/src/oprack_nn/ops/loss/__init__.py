"""Definitions of losses."""
