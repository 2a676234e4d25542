"""Operators that open rings of ranks."""
