"""Layer of eye."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_tensor.layers.create._dtype import dtype_attr


def eye(num_rows: int, num_columns: int | None = None, dtype: object = "float32", name: str | None = None) -> Variable:
    """[num_rows, num_columns] with ones on the diagonal; num_columns defaults to num_rows. Op eye."""
    attrs = {
        "num_rows": num_rows,
        "num_columns": num_rows if num_columns is None else num_columns,
        "dtype": dtype_attr(dtype, "eye"),
    }
    return LayerHelper("eye", name=name).apply("eye", {}, attrs, stop_gradient=True)
