"""Equations and factors of matrices, by elimination: ONNX has none of them."""

from __future__ import annotations

from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import scan


def _eye(size: Expr, dtype: VarType) -> Expr:
    place = arange(size)
    return place.unsqueeze(0).equal(place.unsqueeze(1)).cast(dtype)


def inverse_of(call: Call, x: Expr) -> Expr:
    """The inverse of matrices [..., n, n]: Gauss and Jordan's elimination, with the largest pivot of each column."""
    n = x.size(-1)
    flat = x.reshape(-1, n, n)
    wide = flat.join(_eye(n, x.dtype).unsqueeze(0).op("Expand", flat.shape()), axis=2)
    rows = arange(n)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (now,), (k,) = states, given
        inner = Expr(now.graph, rows.name, rows.dtype)
        column = now.gather(k.reshape(1), 2)  # [batch, n, 1]
        below = (inner >= k).reshape(-1, 1)
        pivot = below.select(abs(column), -1).op("ArgMax", dtype=VarType.INT64, axis=1, keepdims=1)
        # rows k and pivot change places
        here, there = inner.reshape(1, -1, 1).equal(k), inner.reshape(1, -1, 1).equal(pivot)
        upper, lower = now.gather(k.reshape(1), 1), now.op("GatherND", pivot.reshape(-1, 1, 1), batch_dims=1)
        swapped = here.select(lower, there.select(upper, now))
        first = lower / lower.gather(k.reshape(1), 2)
        factors = swapped.gather(k.reshape(1), 2)
        return [here.select(first, swapped - factors * first)], []

    (out,) = scan(call, [wide], [rows], step, [3])
    return out.op("Slice", n, constant(call.graph, [LAST]), constant(call.graph, [2])).op("Reshape", x.shape())


def triangle(x: Expr, upper: bool) -> Expr:
    """A triangle of matrices, zeros elsewhere."""
    return x.op("Trilu", upper=int(upper))


@exported("inverse")
def inverse(call: Call) -> None:
    write(call, inverse_of(call, read(call, "Input")), "Output")


@exported("solve", "triangular_solve")
def solve(call: Call) -> None:
    x, y = read(call), read(call, "Y")
    if call.type == "triangular_solve":
        n = x.size(-1)
        x = triangle(x, bool(call.attr("upper")))
        if call.attr("unitriangular"):
            one = _eye(n, VarType.BOOL)
            x = one.select(x.like(1), x)
        if call.attr("transpose"):
            rank = call.rank()
            x = x.transpose(*range(rank - 2), rank - 1, rank - 2)
    vector = call.type == "solve" and call.rank("Y") == 1
    out = inverse_of(call, x) @ (y.unsqueeze(1) if vector else y)
    write(call, out.squeeze(-1) if vector else out)


@exported("cholesky", "cholesky_solve")
def cholesky(call: Call) -> None:
    rank, upper = call.rank(), bool(call.attr("upper"))
    turn = (*range(rank - 2), rank - 1, rank - 2)
    if call.type == "cholesky_solve":
        y_rank = call.rank("Y")
        factor = triangle(read(call, "Y"), upper)
        other = factor.transpose(*range(y_rank - 2), y_rank - 1, y_rank - 2)
        whole = other @ factor if upper else factor @ other
        write(call, inverse_of(call, whole) @ read(call))
        return
    x = read(call)
    n = x.size(-1)
    flat = triangle(x, upper)
    flat = flat.transpose(*turn).reshape(-1, n, n) if upper else flat.reshape(-1, n, n)
    rows = arange(n)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (done,), (k, column) = states, given  # columns before k are those of the factor; `column` [batch, n]
        inner = Expr(done.graph, rows.name, rows.dtype)
        row = done.gather(k.reshape(1), 1)  # [batch, 1, n]
        rest = column.unsqueeze(2) - done @ row.transpose(0, 2, 1)
        root = rest.gather(k.reshape(1), 1).sqrt()
        found = (inner >= k).reshape(1, -1, 1).select(rest / root, 0)
        return [inner.equal(k).reshape(1, 1, -1).select(found, done)], []

    (factor,) = scan(call, [full(flat.shape(), 0, x.dtype)], [rows, flat.transpose(2, 0, 1)], step, [3])
    factor = factor.op("Reshape", x.shape())
    write(call, factor.transpose(*turn) if upper else factor)


@exported("determinant", "slogdeterminant")
def determinant(call: Call) -> None:
    found = read(call, "Input").op("Det")
    if call.type == "determinant":
        write(call, found)
    else:
        write(call, found.op("Sign").unsqueeze(0).join(abs(found).log().unsqueeze(0), axis=0))


@exported("matrix_power")
def matrix_power(call: Call) -> None:
    x, power = read(call), call.attr("n")
    if power == 0:
        write(call, _eye(x.size(-1), x.dtype).op("Expand", x.shape()))
        return
    x = inverse_of(call, x) if power < 0 else x
    out = x.op("Identity")
    for _ in range(abs(power) - 1):
        out = out @ x
    write(call, out)


@exported("spectral_norm")
def spectral_norm(call: Call) -> None:
    weight, dim, rank, eps = read(call, "Weight"), call.attr("dim"), call.rank("Weight"), call.attr("eps")
    order = [dim, *(i for i in range(rank) if i != dim)]
    turned = weight.transpose(*order)
    matrix = turned.op("Flatten", axis=1)
    u, v = (read(call, s).reshape(-1, 1) for s in "UV")

    def normal(x: Expr) -> Expr:
        size = (x * x).sum().sqrt() + float(eps)
        return x / size

    for _ in range(call.attr("power_iters")):
        v = normal(matrix.transpose(1, 0) @ u)
        u = normal(matrix @ v)
    write(call, weight / (u * (matrix @ v)).sum())
