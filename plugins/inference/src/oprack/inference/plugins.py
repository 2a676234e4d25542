"""Modules of plugins that serve clients of other libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oprack.errors import MissingPackError


def of_plugin(module: str, what: str) -> Any:
    """A module of a plugin.

    Args:
        module: Its name, such as "oprack_onnx.sessions".
        what: The call and what the plugin does for it, for the message.

    Returns:
        The module.

    Raises:
        MissingPackError: The plugin is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        distribution = package.replace("_", "-")
        raise MissingPackError(
            f"{what} by {distribution}, which is not installed: pip install {distribution}"
        ) from None
