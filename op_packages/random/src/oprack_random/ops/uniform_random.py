"""uniform_random: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._shape import SHAPE_TENSOR, SHAPE_TENSOR_LIST, infer_dtype_attr, infer_given_shape


class UniformRandom(OpDef, type="uniform_random"):
    r"""$$Out \sim U[min, max)$$; the diag attributes then put a constant at regular places of a matrix."""

    ShapeTensor = SHAPE_TENSOR
    ShapeTensorList = SHAPE_TENSOR_LIST
    Out = Output("Tensor of the given shape and `dtype`.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(5, "dtype of Out.")
    min = Attr(-1.0, "Lower bound.", support_tensor=True)
    max = Attr(1.0, "Upper bound.", support_tensor=True)
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    diag_num = Attr(0, "How many elements to set to `diag_val`.").at_least(0)
    diag_step = Attr(0, "From one of them to the next: row i, column i of the matrix moves on by this.").at_least(0)
    diag_val = Attr(1.0, "Value of those elements.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_given_shape
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad
