"""What the server says of itself."""

from __future__ import annotations

from typing import Any

EXTENSIONS = ["binary_tensor_data", "classification", "model_repository", "model_configuration", "statistics", "lod"]


def server_version() -> str:
    """Version of this distribution."""
    from importlib.metadata import version

    return version("oprack-serve")


def server_metadata() -> dict[str, Any]:
    """The server metadata of the protocol."""
    return {"name": "oprack", "version": server_version(), "extensions": EXTENSIONS}
