"""A page on this machine that shows packs, ops and a model."""
