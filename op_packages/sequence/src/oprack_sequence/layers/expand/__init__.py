"""Rows and sequences repeated for another LoD, and the LoD itself."""
