"""Op pack of neural networks: convolution, pooling, normalisation, activations, losses, embedding, interpolation."""
