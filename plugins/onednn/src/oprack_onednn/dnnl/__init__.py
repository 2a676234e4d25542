"""oneDNN's library and its objects, by its C API."""
