"""Op pack of graph neural networks: messages along edges, and numbers for sampled nodes."""
