"""paddle.nn: layers that oprack.nn has not, and initial values."""
