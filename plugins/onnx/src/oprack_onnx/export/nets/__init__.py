"""How the layers of nets are written."""
