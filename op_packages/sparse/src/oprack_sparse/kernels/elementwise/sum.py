"""Kernel of sum, an op of the pack math, over sparse tensors: their gradients add up by it."""

from __future__ import annotations

from functools import reduce

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import same_pattern
from oprack_sparse.kernels.elementwise._family import combined


@kernel("sum", dtypes=FLOATS | INTEGERS)
def sum_of_sparse(X: list[SparseTensor]) -> SparseTensor:
    """The sum; of gradients, which list the same elements, it is that of their values."""
    first, *others = X
    if all(same_pattern(first, x) for x in others):
        return first.with_values(reduce(np.add, (x.values for x in others), first.values.copy()))
    return reduce(lambda x, y: combined("sum", x, y, np.add), others, first)
