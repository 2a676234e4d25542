"""randint: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._shape import SHAPE_TENSOR, SHAPE_TENSOR_LIST, infer_dtype_attr, infer_given_shape


class Randint(OpDef, type="randint"):
    r"""$$P(Out_i = k) = \frac{1}{high - low}, \quad low \le k < high$$"""

    ShapeTensor = SHAPE_TENSOR
    ShapeTensorList = SHAPE_TENSOR_LIST
    Out = Output("Tensor of the given shape and `dtype`.")
    low = Attr(REQUIRED, "Least value.", type=AttrType.INT)
    high = Attr(REQUIRED, "Value after the greatest.", type=AttrType.INT)
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(3, "dtype of Out.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_given_shape
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad
