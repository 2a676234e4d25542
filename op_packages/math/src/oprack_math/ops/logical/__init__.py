"""Definitions of logic on truth values."""
