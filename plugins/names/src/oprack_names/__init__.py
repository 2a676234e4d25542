"""The distribution of tables of names, which lie in `oprack/names`; they are data, and nothing of it is imported."""
