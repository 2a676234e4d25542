"""The command `oprack launch`: ranks as processes, how each of them ends, and what is said of it."""
