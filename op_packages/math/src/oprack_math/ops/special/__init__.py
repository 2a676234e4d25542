"""Definitions of special functions."""
