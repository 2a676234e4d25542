"""What operators decide of single models, in files beside them."""
