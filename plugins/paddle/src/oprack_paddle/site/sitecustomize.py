"""Serves `import paddle` in Python processes that a served program starts; Python imports it by its name.

A sitecustomize of the environment itself, which this one hides, is imported as well.
"""

import os
import sys


def _next() -> None:
    """Import the module of this name that comes after this one in sys.path."""
    here = os.path.dirname(os.path.abspath(__file__))
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
    if spec is not None and spec.loader is not None and spec.origin != __file__:
        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get("OPRACK_PADDLE") == "1":
    try:
        from oprack_paddle.serving import as_paddle
    except ImportError:  # another environment's Python, which has no oprack
        pass
    else:
        as_paddle()
_next()
