"""Data for training: datasets and samplers, the DataLoader and its workers; users find all of it in `oprack.io`."""
