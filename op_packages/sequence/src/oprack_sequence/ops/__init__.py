"""Definitions of the pack's ops."""
