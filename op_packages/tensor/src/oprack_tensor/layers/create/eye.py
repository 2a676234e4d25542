"""Layer of eye."""

from __future__ import annotations

from oprack.layers import LayerHelper

from oprack_tensor.layers.create._dtype import dtype_attr


def eye(num_rows, num_columns=None, dtype="float32", name=None):
    """[num_rows, num_columns] with ones on the diagonal; num_columns defaults to num_rows. Op eye."""
    attrs = {
        "num_rows": num_rows,
        "num_columns": num_rows if num_columns is None else num_columns,
        "dtype": dtype_attr(dtype, "eye"),
    }
    return LayerHelper("eye", name=name).apply("eye", {}, attrs, stop_gradient=True)
