"""Definitions of ops; they import no array library."""
