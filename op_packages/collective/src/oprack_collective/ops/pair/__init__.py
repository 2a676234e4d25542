"""Definitions of ops by which one rank sends to another."""
