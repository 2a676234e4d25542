"""Sequences parted by a mask, and put together again."""
