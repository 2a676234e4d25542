"""What Python itself leaves open, nothing of ops: lock, collector, interruptions, quick dataclasses, tuples, rooms."""
