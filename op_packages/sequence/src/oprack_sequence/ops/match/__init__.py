"""Sequences against sequences, as models of search match queries with titles."""
