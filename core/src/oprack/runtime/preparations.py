"""Preparations: rewrites that packs make of programs with certain ops, before they run."""

from __future__ import annotations

from typing import Any

from oprack.desc import ProgramDesc
from oprack.packs.resolve import import_object


def prepared_desc(desc: ProgramDesc, manager: Any) -> ProgramDesc:
    """The program as it runs.

    Args:
        desc: The program; it is not changed.
        manager: The packs.

    Returns:
        The program itself, unless a pack registered a preparation for one of its ops.
    """
    op_types = {op.type for block in desc.blocks for op in block.ops}
    for owner, op_type, target in manager.targets("preparation"):
        if op_type in op_types:
            desc = import_object(target, f"preparation of op {op_type} by {owner}")(desc)
    return desc
