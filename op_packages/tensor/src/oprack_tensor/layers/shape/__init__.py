"""The same elements in other dims, repeated where dims grow; and what the dims are."""
