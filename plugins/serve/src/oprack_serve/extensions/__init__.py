"""Extensions of the open inference protocol: what a server may have, and says of itself that it has."""
