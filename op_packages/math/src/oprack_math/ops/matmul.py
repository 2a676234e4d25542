"""Definitions of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER
from oprack.op.sbp import SbpContext, Signature, factors, leading, product_names
from oprack.types import AttrType

from oprack_math.composition import composed
from oprack_math.ops._attrs import FORCE_FP32_OUTPUT, SCALE_OUT, SCALE_X, SCALE_Y
from oprack_math.ops._broadcast import DoubleGrad, broadcast_dims

# einsum equations: what they say about operands of given ranks.
_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Equation:
    """One letter per dim: of each operand, and of the result; "..." is spelled out with letters of its own."""

    inputs: tuple[str, ...]
    output: str


def parse(equation: str, ranks: Sequence[int]) -> Equation:
    """Equation for operands of these ranks; without "->" the output has the letters that occur once, sorted.

    Raises InvalidArgumentError that names the part of the equation that does not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    _require(len(parts) == len(ranks), equation, f"it has {len(parts)} operands, but {len(ranks)} tensors are given")
    broadcast = 0
    for part, rank in zip(parts, ranks, strict=True):
        letters = part.replace("...", "", 1)
        _require(letters.isalpha() or not letters, equation, f"{part!r} holds something else than letters and '...'")
        extra = rank - len(letters)
        fits = extra >= 0 if "..." in part else extra == 0
        _require(fits, equation, f"{part!r} has {len(letters)} letters, but its tensor is of rank {rank}")
        broadcast = max(broadcast, extra)
    spare = [c for c in _SPARE if c not in text][:broadcast]
    inputs = tuple(
        part.replace("...", "".join(spare[broadcast - rank + len(part.replace("...", "")) :]))
        for part, rank in zip(parts, ranks, strict=True)
    )
    if arrow:
        output = right.replace("...", "".join(spare))
    else:
        used = left.replace("...", "").replace(",", "")
        output = "".join(spare) + "".join(sorted(c for c in set(used) if used.count(c) == 1))
    unknown = [c for c in output if not any(c in labels for labels in inputs)]
    _require(not unknown, equation, f"the output has {', '.join(unknown)}, which no operand has")
    _require(len(set(output)) == len(output), equation, "the output has a letter twice")
    return Equation(inputs, output)


def sizes(parsed: Equation, shapes: Sequence[tuple[int, ...]], equation: str) -> dict[str, int]:
    """Size of every letter; dims of 1 broadcast, -1 is not known yet.

    Raises InvalidArgumentError when a letter stands for two different sizes.
    """
    found: dict[str, int] = {}
    for labels, shape in zip(parsed.inputs, shapes, strict=True):
        for c, n in zip(labels, shape, strict=True):
            m = found.get(c, 1)
            if not (m == n or 1 in (m, n) or -1 in (m, n)):
                raise InvalidArgumentError(
                    f"op einsum: equation {equation!r}: {c!r} is a dim of size {m} and one of size {n}; expected one "
                    f"size for each letter; the operands have shapes {list(map(list, shapes))}"
                )
            found[c] = n if m == 1 else m if n in (1, -1) else n
    return found


def _require(condition: bool, equation: str, what: str) -> None:
    if not condition:
        raise InvalidArgumentError(
            f"op einsum: equation {equation!r}: {what}; expected one part per operand with one letter per dim, "
            "such as 'bij,bjk->bik' or '...ij,jk->...ik'"
        )


# Shapes of matrix products.
def product_dims(
    ctx: InferShapeContext, x: tuple[int, ...], y: tuple[int, ...], trans_x: bool, trans_y: bool, heads: int = 1
) -> tuple[int, ...]:
    """Shape of X Y, batch dims broadcast; a 1-D X is a row and a 1-D Y a column, which the result then lacks.

    heads: X's columns and Y's rows in that many groups, whose products are put side by side.
    Raises InvalidArgumentError when the inner dims differ.
    """
    ctx.require(len(x) > 0 and len(y) > 0, f"X has shape {list(x)} and Y {list(y)}; expected at least one dim in each")
    m, k = (None, x[0]) if len(x) == 1 else (x[-1], x[-2]) if trans_x else (x[-2], x[-1])
    inner, n = (y[0], None) if len(y) == 1 else (y[-1], y[-2]) if trans_y else (y[-2], y[-1])
    ctx.require(
        k == inner or -1 in (k, inner),
        f"X has shape {list(x)}{' (transposed)' if trans_x else ''} and Y {list(y)}"
        f"{' (transposed)' if trans_y else ''}; expected X's {k} columns to be as many as Y's {inner} rows",
    )
    batch = broadcast_dims(tuple(x[:-2]), tuple(y[:-2]), -1, ctx.op_type)
    if n is not None and n >= 0:
        n *= heads
    return (*batch, *(() if m is None else (m,)), *(() if n is None else (n,)))


# addmm and its gradient.
class Addmm(OpDef, type="addmm"):
    r"""$$Out = Beta \cdot Input + Alpha \cdot X Y$$"""

    Input_ = Input("[n, m], [m], or ones in place of these.")
    X = Input("[n, k]")
    Y = Input("[k, m]")
    Out = Output("[n, m]; LoD of Input.")
    Beta = Attr(1.0, "Factor of Input.")
    Alpha = Attr(1.0, "Factor of the product.")
    use_mkldnn = USE_MKLDNN
    inplace = {"Input": "Out"}

    def sbp(ctx: SbpContext) -> list[Signature]:
        if len(ctx.dim("Input")) != 2 or ctx.dim("Input") != ctx.dim("Out"):
            return []
        return factors({"Input": "m n", "X": "m k", "Y": "k n"}, {"Out": "m n"}, no=["k"])

    def infer_shape(ctx: InferShapeContext) -> None:
        product = product_dims(ctx, ctx.require_rank("X", 2), ctx.require_rank("Y", 2), False, False)
        given = ctx.require_rank("Input", 1, 2)
        fits = all(-1 in (a, b) or a in (1, b) for a, b in zip(given, product[-len(given) :], strict=True))
        ctx.require(fits, f"Input has shape {list(given)}; expected one that broadcasts to {list(product)}")
        ctx.set_dim("Out", broadcast_dims(given, product, -1, ctx.op_type))
        ctx.share_lod("Input", "Out")


class AddmmGrad(GradOpDef, of=Addmm, reads="Input X Y"):
    r"""$$Input@GRAD = Beta \cdot Out@GRAD,\quad X@GRAD = Alpha \cdot Out@GRAD\,Y^T,\quad
    Y@GRAD = Alpha \cdot X^T Out@GRAD$$"""


# bmm and its gradient.
class Bmm(OpDef, type="bmm"):
    r"""$$Out_b = X_b Y_b$$"""

    X = Input("[B, M, K].")
    Y = Input("[B, K, N].")
    Out = Output("[B, M, N], LoD of X.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        x, y, out = product_names(ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), False, False)
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 3), ctx.require_rank("Y", 3)
        ctx.require(
            x[0] == y[0] or -1 in (x[0], y[0]),
            f"X has shape {list(x)} and Y {list(y)}; expected equal first dims, the batch",
        )
        ctx.set_dim("Out", product_dims(ctx, x, y, False, False))
        ctx.share_lod("X", "Out")


class BmmGrad(GradOpDef, of=Bmm, reads="X Y"):
    r"""$$X@GRAD_b = Out@GRAD_b\, Y_b^T,\quad Y@GRAD_b = X_b^T Out@GRAD_b$$"""

    @composed
    def make_grad(o: Any, X: Any, Y: Any, Out_grad: Any) -> dict[str, Any]:
        return {
            "X@GRAD": o.matmul_v2(X=Out_grad, Y=Y, trans_y=True),
            "Y@GRAD": o.matmul_v2(X=X, Y=Out_grad, trans_x=True),
        }


# cross and its gradient.
FIRST_OF_THREE = 9

"""Value of `dim` that stands for the first dim of size 3."""


class Cross(OpDef, type="cross"):
    r"""$$Out = X \times Y = (x_2 y_3 - x_3 y_2,\ x_3 y_1 - x_1 y_3,\ x_1 y_2 - x_2 y_1)$$ along a dim of size 3."""

    X = Input("Tensor with a dim of size 3.")
    Y = Input("Tensor of X's shape.")
    Out = Output("Shape and LoD of X.")
    dim = Attr(FIRST_OF_THREE, "Dim of the vectors; negative counts from the end, 9 is the first one of size 3.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, dim = ctx.dim("X"), ctx.attr("dim")
        ctx.same_dims("X", "Y")
        if dim == FIRST_OF_THREE:
            ctx.require(3 in dims or -1 in dims, f"X has shape {list(dims)}; expected a dim of size 3")
        else:
            size = dims[ctx.axis("X", "dim")] if dims else 0
            ctx.require(size in (3, -1), f"X has shape {list(dims)} and dim is {dim}; expected size 3 there")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class CrossGrad(GradOpDef, of=Cross, reads="X Y"):
    r"""$$X@GRAD = Y \times Out@GRAD,\quad Y@GRAD = Out@GRAD \times X$$"""

    @composed
    def make_grad(o: Any, X: Any, Y: Any, Out_grad: Any) -> dict[str, Any]:
        dim = o.attrs["dim"]
        return {"X@GRAD": o.cross(X=Y, Y=Out_grad, dim=dim), "Y@GRAD": o.cross(X=Out_grad, Y=X, dim=dim)}


# dot and its gradient.
class Dot(OpDef, type="dot"):
    r"""$$Out_b = \sum_i X_{b,i} Y_{b,i}$$"""

    X = Input("[K] or [B, K].")
    Y = Input("Shape of X.")
    Out = Output("Shape [] or [B]; no LoD.")
    sbp = leading(("X", "Y"), ("Out",), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 1, 2)
        ctx.same_dims("X", "Y")
        ctx.set_dim("Out", dims[:-1])


class DotGrad(GradOpDef, of=Dot, reads="X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""

    @composed
    def make_grad(o: Any, X: Any, Y: Any, Out_grad: Any) -> dict[str, Any]:
        column = o.unsqueeze2(X=Out_grad, axes=[-1])
        return {"X@GRAD": Y * column, "Y@GRAD": X * column}


class Einsum(OpDef, type="einsum"):
    r"""Sum of products over the letters that Out lacks: "bij,bjk->bik" is $$Out_{bik} = \sum_j A_{bij} B_{bjk}$$"""

    Operands = Input("The factors.", duplicable=True)
    Out = Output("Dims in the order of the equation's right side; no LoD.")
    InnerCache = Output("Copies of the operands for the gradient.", duplicable=True, intermediate=True, extra=True)
    XShape = Output("Shapes of the operands; holds no value.", duplicable=True, intermediate=True, extra=True)
    equation = Attr(REQUIRED, "Letters of the operands' dims, '->', letters of Out's dims.", type=AttrType.STRING)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, text = ctx.dims("Operands"), ctx.attr("equation")
        parsed = parse(text, [len(d) for d in dims])
        size = sizes(parsed, dims, text)
        ctx.set_dim("Out", [size[c] for c in parsed.output])
        for slot in ("InnerCache", "XShape"):
            ctx.set_dims(slot, dims[: ctx.output_count(slot)])


class EinsumGrad(
    GradOpDef, of=Einsum, reads="XShape? InnerCache Out@GRAD", like="InnerCache", names={"XShape": "x_shape"}
):
    r"""Of each operand: the sum of products of Out@GRAD and the other operands over the letters that it lacks."""

    expected_kernel_type = dtype_of("Out@GRAD")


# kron and its gradient.
class Kron(OpDef, type="kron"):
    r"""$$Out_{i n + k,\, j m + l} = X_{i,j} Y_{k,l}$$ for Y of shape [n, m]; so in all dims, the last ones aligned."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of any shape.")
    Out = Output("Products of the dims; the shape of lower rank is filled up with ones in front.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        rank = max(len(x), len(y))
        pairs = zip((1,) * (rank - len(x)) + tuple(x), (1,) * (rank - len(y)) + tuple(y), strict=True)
        ctx.set_dim("Out", [-1 if -1 in pair else pair[0] * pair[1] for pair in pairs])


class KronGrad(GradOpDef, of=Kron, reads="X Y"):
    r"""$$X@GRAD_{i,j} = \sum_{k,l} Out@GRAD_{i n + k,\, j m + l} \overline{Y_{k,l}}$$ and likewise for Y."""


# matmul, the op of programs before 2.0, with its first and second gradient.
def _as_matrices(
    x: tuple[int, ...], y: tuple[int, ...], trans_x: bool, trans_y: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A transposed vector is a matrix here, other than in matmul_v2."""
    return ((*x, 1) if trans_x and len(x) == 1 else x), ((1, *y) if trans_y and len(y) == 1 else y)


class Matmul(OpDef, type="matmul"):
    r"""$$Out = alpha \cdot X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product, LoD of X.")
    transpose_X = Attr(False, "Swap the last two dims of X; a 1-D X becomes a column.")
    transpose_Y = Attr(False, "Swap the last two dims of Y; a 1-D Y becomes a row.")
    alpha = Attr(1.0, "Factor of the product.")
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    Scale_out = SCALE_OUT
    force_fp32_output = FORCE_FP32_OUTPUT
    head_number = Attr(1, "Groups of X's columns and Y's rows; their products are put side by side.").at_least(1)
    versions = OpVersion("matmul").checkpoint(
        "The reshape of Y was folded into the op, as fused_matmul does.", ("delete_attr", "fused_reshape_Y", [])
    )

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.attr("head_number", 1) != 1 or min(len(ctx.dim("X")), len(ctx.dim("Y"))) < 2:
            return []
        x, y, out = product_names(
            ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), ctx.attr("transpose_X"), ctx.attr("transpose_Y")
        )
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        flags = ctx.attr("transpose_X"), ctx.attr("transpose_Y")
        # (1, n) is already the transposed Y, (k, 1) the transposed X
        x, y = _as_matrices(ctx.dim("X"), ctx.dim("Y"), *flags)
        flags = flags[0] and len(ctx.dim("X")) > 1, flags[1] and len(ctx.dim("Y")) > 1
        ctx.set_dim("Out", product_dims(ctx, x, y, *flags, ctx.attr("head_number")))
        ctx.share_lod("X", "Out")


class MatmulGrad(GradOpDef, of=Matmul, reads="X Y"):
    r"""$$X@GRAD = alpha \cdot Out@GRAD\, Y^T,\quad Y@GRAD = alpha \cdot X^T Out@GRAD$$"""


class MatmulGradGrad(
    DoubleGrad,
    of=MatmulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grad_names={"X": "DX", "Y": "DY"},
):
    r"""$$DDOut = alpha (DDX\,Y + X\,DDY),\quad DX = alpha \cdot DOut\,DDY^T,\quad DY = alpha \cdot DDX^T DOut$$"""


# matmul_v2, with gradients to third order.
class MatmulV2(OpDef, type="matmul_v2"):
    r"""$$Out = X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product; no LoD.")
    trans_x = Attr(False, "Swap the last two dims of X; a 1-D X stays.")
    trans_y = Attr(False, "Swap the last two dims of Y; a 1-D Y stays.")
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    def sbp(ctx: SbpContext) -> list[Signature]:
        x, y, out = product_names(ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), ctx.attr("trans_x"), ctx.attr("trans_y"))
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", product_dims(ctx, ctx.dim("X"), ctx.dim("Y"), ctx.attr("trans_x"), ctx.attr("trans_y")))


class MatmulV2Grad(GradOpDef, of=MatmulV2, reads="X Y"):
    r"""$$X@GRAD = Out@GRAD\, Y^T,\quad Y@GRAD = X^T Out@GRAD$$ summed over broadcast batch dims."""


class MatmulV2GradGrad(
    GradOpDef,
    of=MatmulV2Grad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x", "Y@GRAD": "grad_y"},
):
    r"""With $d$ = grad_out, $e$ = grad_x@GRAD and $f$ = grad_y@GRAD, each zero where absent:

    $$grad\_out@GRAD = e Y + X f,\quad X@GRAD = d f^T,\quad Y@GRAD = e^T d$$
    """


class MatmulV2TripleGrad(
    GradOpDef,
    of=MatmulV2GradGrad,
    type="matmul_v2_triple_grad",
    like={"grad_x@GRAD": "X", "grad_y@GRAD": "Y"},
    reads="X Y grad_out grad_x@GRAD grad_y@GRAD X@GRAD@GRAD? Y@GRAD@GRAD? grad_out@GRAD@GRAD?",
    names={
        "grad_x@GRAD": "grad_grad_x",
        "grad_y@GRAD": "grad_grad_y",
        "grad_out@GRAD": "grad_grad_out",
        "X@GRAD": "grad_x",
        "Y@GRAD": "grad_y",
    },
):
    r"""With $d$ = grad_out, $e, f$ = grad_grad_x, grad_grad_y, $a, b, c$ = grad_x, grad_y, grad_grad_out @GRAD:

    $$X@GRAD = c f^T,\quad Y@GRAD = e^T c,\quad d@GRAD = a f + e b$$
    $$e@GRAD = c Y^T + d b^T,\quad f@GRAD = X^T c + a^T d$$
    """


# multi_dot and its gradient.
class MultiDot(OpDef, type="multi_dot"):
    r"""$$Out = X_1 X_2 \cdots X_k$$ in the order that takes the fewest multiplications."""

    X = Input("k matrices; the first and the last one may be vectors, a row and a column.", duplicable=True)
    Out = Output("[rows of the first, columns of the last], without those of vectors; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        wrong = [s for i, s in enumerate(shapes) if len(s) not in ((1, 2) if i in (0, len(shapes) - 1) else (2,))]
        ctx.require(
            len(shapes) > 1 and not wrong,
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected two matrices or more, where the first and "
            "the last one may be vectors",
        )
        full = [(1, *s) if not i and len(s) == 1 else s for i, s in enumerate(shapes)]
        dims = reduce(lambda x, y: product_dims(ctx, x, y, False, False), full)
        ctx.set_dim("Out", dims[1:] if len(shapes[0]) == 1 else dims)


class MultiDotGrad(GradOpDef, of=MultiDot, reads="X"):
    r"""$$X_i@GRAD = (X_1 \cdots X_{i-1})^T Out@GRAD (X_{i+1} \cdots X_k)^T$$"""


# mv and its gradient.
class Mv(OpDef, type="mv"):
    r"""$$Out_i = \sum_j X_{i,j} Vec_j$$"""

    X = Input("[n, m]")
    Vec = Input("[m]")
    Out = Output("[n]; no LoD.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return factors({"X": "m k", "Vec": "k"}, {"Out": "m"}, linear=(("X",), ("Vec",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = ctx.require_rank("X", 2)
        ctx.require_dims("Vec", [columns], why=f"since X has {columns} columns")
        ctx.set_dim("Out", (rows,))


class MvGrad(GradOpDef, of=Mv, reads="X Vec"):
    r"""$$X@GRAD_{i,j} = Out@GRAD_i Vec_j,\quad Vec@GRAD_j = \sum_i X_{i,j} Out@GRAD_i$$"""

    @composed
    def make_grad(o: Any, X: Any, Vec: Any, Out_grad: Any) -> dict[str, Any]:
        column = o.unsqueeze2(X=Out_grad, axes=[1])
        return {
            "X@GRAD": o.matmul_v2(X=column, Y=o.unsqueeze2(X=Vec, axes=[0])),
            "Vec@GRAD": o.matmul_v2(X=X, Y=Out_grad, trans_x=True),
        }
