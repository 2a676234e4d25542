"""What Python itself leaves open, nothing of ops: its lock and collector, interruptions, quick dataclasses, rooms."""
