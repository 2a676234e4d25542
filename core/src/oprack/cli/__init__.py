"""The `oprack` command."""
