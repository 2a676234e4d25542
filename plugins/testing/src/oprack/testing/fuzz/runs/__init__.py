"""How an example is run over each path, and what two runs may differ by."""
