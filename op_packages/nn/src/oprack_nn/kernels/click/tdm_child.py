"""Kernel of tdm_child."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS


@kernel("tdm_child", dtypes=FLOATS | {"int32", "int64"})
def tdm_child(X: Array, TreeInfo: Array, *, child_nums: int, dtype: int) -> tuple[Array, Array]:
    if X.size and (X.min() < 0 or X.max() >= len(TreeInfo)):
        raise InvalidArgumentError(
            f"op tdm_child: X holds nodes {int(X.min())} to {int(X.max())}; expected 0 <= node < {len(TreeInfo)}, the "
            "rows of TreeInfo"
        )
    children = TreeInfo[X.astype(np.int64)][..., 3 : 3 + child_nums].astype(np.int64)
    has = (X != 0) & (children[..., 0] != 0)
    children = np.where(has[..., None], children, 0)
    if children.size and (children.min() < 0 or children.max() >= len(TreeInfo)):
        raise InvalidArgumentError(
            f"op tdm_child: TreeInfo names child {int(children.max())}; expected nodes below {len(TreeInfo)}, its rows"
        )
    leaf = (TreeInfo[children, 0] != 0) & has[..., None]
    kind = numpy_dtype(dtype)
    return children.astype(kind), leaf.astype(kind)
