"""Build hook: puts the template of `oprack new-pack` into the wheel and the sdist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TemplateHook(BuildHookInterface):  # type: ignore[type-arg]
    """The template is at the top of a checkout, and `templates` in an unpacked sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the checkout's own template is found there
        source = next(p for p in (Path(self.root, "templates"), Path(self.root).parents[1] / "templates") if p.is_dir())
        target = "oprack_testing/templates" if self.target_name == "wheel" else "templates"
        build_data["force_include"][str(source)] = target
