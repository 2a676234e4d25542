"""Definitions of ops for which op runs before which, and rings of ranks."""
