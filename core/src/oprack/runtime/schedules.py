"""Numbers that Python computes before a run, such as the learning rate of this step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from oprack.tensor import LoDTensor, Scope, numpy_dtype
from oprack.types import VarType

if TYPE_CHECKING:
    from oprack.desc import BlockDesc
    from oprack.program import Schedule


def set_schedules(block: BlockDesc, schedules: Mapping[str, Schedule], scope: Scope) -> None:
    """Write the present values of schedules into their persistable variables, in the scope that has them."""
    for name, schedule in schedules.items():
        var = block.var(name)
        array = np.full(var.shape or (), schedule(), numpy_dtype(var.dtype or VarType.FP32))
        (scope.find_var(name) or scope.root().var(name)).value = LoDTensor(array)
