"""Where the parts of a tensor lie, how they get from one layout to another, and which layouts an op is computed in."""
