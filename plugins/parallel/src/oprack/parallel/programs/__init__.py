"""Static programs of one rank made into those of each rank."""
