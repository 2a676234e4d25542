"""Recurrent networks: over whole sequences, over padded batches, one step."""
