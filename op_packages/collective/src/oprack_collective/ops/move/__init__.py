"""Definitions of ops for data that moves between ranks."""
