"""paddle.vision: pictures and what changes them, data sets of files, and nets."""
