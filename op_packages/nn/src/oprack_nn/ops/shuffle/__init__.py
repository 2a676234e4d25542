"""Definitions of rearrangements of channels and pixels."""
