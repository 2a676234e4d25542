"""Op pack of Fourier transforms, and of the frames of a signal."""
