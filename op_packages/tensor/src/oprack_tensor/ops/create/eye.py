"""eye: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


class Eye(OpDef, type="eye"):
    r"""$$Out_{i,j} = [i = j]$$"""

    Out = Output("[num_rows, num_columns]")
    num_rows = Attr(REQUIRED, "Number of rows.", type=AttrType.LONG, support_tensor=True)
    num_columns = Attr(-1, "Number of columns; -1 for as many as rows.", type=AttrType.LONG, support_tensor=True)
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        (rows,), (columns,) = given_ints(ctx, "num_rows"), given_ints(ctx, "num_columns")
        columns = rows if columns == -1 else columns
        sizes = [-1 if n is None else n for n in (rows, columns)]
        ctx.require_sizes("the matrix of num_rows and num_columns", sizes)
        ctx.set_dim("Out", sizes)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
