"""Definitions of chains of sequence ops."""
