"""Programs as Python objects: ProgramDesc holds BlockDescs, which hold VarDescs and OpDescs.

The objects own their data; protobuf is imported only by `parse` and `serialize`, NumPy never.
"""

from __future__ import annotations

from oprack.desc.op_desc import OpDesc
from oprack.desc.program_desc import BlockDesc, ProgramDesc
from oprack.desc.var_desc import VarDesc
from oprack.types import AttrType, VarType

__all__ = ["AttrType", "BlockDesc", "OpDesc", "ProgramDesc", "VarDesc", "VarType"]
