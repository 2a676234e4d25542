"""The distribution that brings the room `oprack.names`."""
