"""paddle.utils."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
from oprack.inference.enums import PADDLE_VERSION


def deprecated(update_to: str = "", since: str = "", reason: str = "", level: int = 0) -> Callable[..., Any]:
    """A decorator of functions that are not to be used any more: they warn, and by level 2 they raise."""

    def decorated(function: Any) -> Any:
        said = f"{function.__name__} is deprecated" + (f" since {since}" if since else "")
        said += (f"; use {update_to}" if update_to else "") + (f": {reason}" if reason else "")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if level == 2:
                raise RuntimeError(said)
            if level < 2:
                warnings.warn(said, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call

    return decorated


def _numbers(version: str) -> list[int]:
    return [int(n) for n in version.split(".")[:4] if n.isdigit()]


def require_version(min_version: str, max_version: Any = None) -> None:
    """Refuse to run as another version of Paddle than these."""
    now = _numbers(PADDLE_VERSION)
    if now < _numbers(min_version) or (max_version is not None and now > _numbers(max_version)):
        raise Exception(f"require_version: the version is {PADDLE_VERSION}; expected {min_version} to {max_version}")


def try_import(module_name: str, err_msg: Any = None) -> Any:
    """Import a module, or say what to install."""
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        raise ImportError(err_msg or f"{module_name} can't be imported; pip install it") from error


def run_check() -> None:
    """Compute a gradient, and say so."""
    x = oprack.to_tensor(np.ones((2, 2), "float32"), requires_grad=True)
    (x * 2).sum().backward()
    if np.asarray(x.grad).sum() != 8.0:
        raise RuntimeError("run_check: the gradient of 2 x is not 2")
    print("oprack serves paddle, and gradients are right.")
