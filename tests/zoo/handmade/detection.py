"""Architectures of PaddleDetection by their tables."""

from __future__ import annotations

from typing import Any

import paddle


def _with_none(value: Any) -> Any:
    """TOML has no null: "none" stands for it."""
    if isinstance(value, dict):
        return {k: _with_none(v) for k, v in value.items()}
    return None if value == "none" else value


class Detector(paddle.nn.Layer):
    """An architecture as ppdet's registry makes it from a table of modules.

    Args:
        architecture: Name of the registered architecture.
        config: Name of a registered module -> its arguments; or the value of one that modules share.
    """

    def __init__(self, architecture: str, config: dict[str, Any]) -> None:
        super().__init__()
        import ppdet.modeling  # noqa: F401 - registers the modules
        from ppdet.core.workspace import create, merge_config

        merge_config({"num_classes": 20, **_with_none(config)})
        self.model = create(architecture)

    def forward(self, image: Any, scale_factor: Any, im_shape: Any = None) -> Any:
        return self.model({"image": image, "scale_factor": scale_factor, "im_shape": im_shape})
