"""Ops over elements of a row."""
