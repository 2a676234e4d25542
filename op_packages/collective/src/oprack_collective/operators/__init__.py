"""Operators of this pack that run themselves."""
