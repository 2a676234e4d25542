"""One row for each sequence or segment."""
