"""Sequences as a padded batch, and back."""
