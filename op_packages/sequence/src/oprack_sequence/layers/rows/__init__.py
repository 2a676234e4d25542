"""The rows of each sequence: joined, cut, reversed, counted, weighed."""
