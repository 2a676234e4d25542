"""Definitions of the ops of this pack."""
