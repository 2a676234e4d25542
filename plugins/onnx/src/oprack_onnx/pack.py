"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_formats(register: Register) -> None:
    """Models of ONNX: their first field is the version of the format, whose tag is one byte."""
    reader, writer = f"{__package__}.reader:read_model", f"{__package__}.export.program:write"
    register.format(".onnx", reader, starts="\x08", holds_parameters=True, writer=writer)
