"""Loops with tensor arrays, for oprack.testing.fuzz."""

from __future__ import annotations

from oprack.testing.fuzz import Net, block
from oprack.types import AttrType, VarType


@block(takes="rows", gives="rows")
def array_loop(net: Net, x: str) -> str:
    """A While that writes one element a round into an array, which is then joined; how often differs from run to run.

    With what it carries from round to round, or only what it reads.
    """
    count = net.feed([1], "int64")
    index = net.op("fill_constant", {}, {"shape": [1], "dtype": int(VarType.INT64), "value": 0.0})
    going = net.op("less_than", {"X": index, "Y": count}, {"axis": -1})
    outer = net.program.global_block()
    array, scopes = net.name("array"), net.name("scopes")
    outer.create_var(array, type=VarType.LOD_TENSOR_ARRAY, dtype="float32", shape=net.shape(x))
    outer.create_var(scopes, type=VarType.STEP_SCOPES)
    first = net.flag()
    if first:  # one element before the loop, so that it is never empty
        net.append("write_to_array", {"X": [x], "I": [index]}, {"Out": [array]})
        net.append("increment", {"X": [index]}, {"Out": [index]}, {"step": 1.0})
    inner = net.program.create_block()
    value = net.op("scale", {"X": x}, {"scale": net.choose(0.5, 2.0)})
    net.append("write_to_array", {"X": [value], "I": [index]}, {"Out": [array]})
    net.append("increment", {"X": [index]}, {"Out": [index]}, {"step": 1.0})
    net.append("less_than", {"X": [index], "Y": [count]}, {"Out": [going]}, {"axis": -1})
    net.program.rollback()
    loop = outer.append_op("while", {"X": [x, index, count], "Condition": [going]}, {"Out": [index, array, going]})
    loop.outputs["StepScopes"] = [scopes]
    loop.set_attr("sub_block", inner.idx, AttrType.BLOCK)
    loop.set_attr("is_test", True)
    return net.op("tensor_array_to_tensor", {"X": array}, {"axis": 0, "use_stack": False})
