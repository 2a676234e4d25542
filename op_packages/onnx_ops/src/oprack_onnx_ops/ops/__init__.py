"""Definitions; they import no array library."""
