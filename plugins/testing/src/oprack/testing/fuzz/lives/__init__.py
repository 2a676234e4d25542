"""Sequences of actions on one net or program, as several engines and their references live them."""
