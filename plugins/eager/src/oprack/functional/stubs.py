"""Type stubs of oprack.functional, from which editors complete names, arguments and documentation."""

from __future__ import annotations

from collections.abc import Iterable

from oprack.errors import OprackError
from oprack.op.signature import function_signature
from oprack.packs.manager import default_manager

HEAD = '''\
"""Every installed op as a {}. Written by `oprack stubs`; write it again when packs change."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprack import Tensor

'''


def stubs(op_types: Iterable[str] | None = None) -> str:
    """The text of functional.pyi.

    Args:
        op_types: Default: all installed ones; what can't be imported is left out.

    Returns:
        Source of the stub.
    """
    manager = default_manager()
    parts = [HEAD.format("function")]
    for op_type in manager.op_types() if op_types is None else op_types:
        try:
            proto = manager.op_info(op_type).proto
        except OprackError:
            continue
        if op_type.isidentifier():
            parts.append(function_signature(proto).stub() + "\n")
    return "\n".join(parts)
