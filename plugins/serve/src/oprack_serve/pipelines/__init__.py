"""Pipelines: models with Python before, between and behind them, so that a picture or a sentence goes in and text comes
out. What a pipeline's own module may want is here; the rest of the package is the server's.
"""

from oprack_serve.pipelines.pictures import decode_picture

__all__ = ["decode_picture"]
