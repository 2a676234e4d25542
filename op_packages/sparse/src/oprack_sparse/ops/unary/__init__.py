"""Ops of every listed element."""
