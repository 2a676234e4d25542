"""Definitions of the ops, without any array library."""
