"""Parts of variables, and variables put together."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable, int_list


def _variables(value, argument, layer):
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise InvalidArgumentError(f"{layer}: {argument} is empty; expected one variable or more")
    return [check_variable(v, argument, layer) for v in values]


def concat(input, axis=0, name=None):
    """A list of variables one after another along `axis`, an int or a Variable of one element. Op concat."""
    helper = LayerHelper("concat", name=name)
    inputs, attrs = {"X": _variables(input, "input", "concat")}, {}
    if isinstance(axis, int):
        attrs["axis"] = axis
    else:
        inputs["AxisTensor"] = check_variable(axis, "axis", "concat", {"int32", "int64"})
    return helper.apply("concat", inputs, attrs)


def split(input, num_or_sections, dim=-1, name=None):
    """A list of parts along `dim`: an int says how many equal ones, a list how long each is (-1, once: what is left).

    Op split. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "split")
    helper = LayerHelper("split", name=name)
    if dim < 0:
        dim += len(input.shape)  # Paddle's op takes no negative axis from a program
    if isinstance(num_or_sections, int):
        return helper.apply("split", {"X": input}, {"num": num_or_sections, "axis": dim}, num=num_or_sections)
    sections = int_list(helper, num_or_sections, "num_or_sections")
    inputs = {"X": input, "SectionsTensorList": sections.tensors or None}
    return helper.apply("split", inputs, {"sections": sections.values, "axis": dim}, num=len(sections.values))


def stack(x, axis=0, name=None):
    """A list of variables of one shape along a new dim `axis`. Op stack."""
    return LayerHelper("stack", name=name).apply("stack", {"X": _variables(x, "x", "stack")}, {"axis": axis})


def unstack(x, axis=0, num=None, name=None):
    """A list of the parts of x along `axis`, that dim gone. num: how many, if its size is not known. Op unstack."""
    check_variable(x, "x", "unstack")
    if num is None:
        num = x.shape[axis]
    if num <= 0:
        raise InvalidArgumentError(f"unstack: dim {axis} of x has size {num} in {list(x.shape)}; pass num")
    return LayerHelper("unstack", name=name).apply("unstack", {"X": x}, {"axis": axis, "num": num}, num=num)


def slice(input, axes, starts, ends, name=None):
    """input[..., starts[i]:ends[i], ...] along each dim axes[i]; Variables of one element may be among the places.

    Op slice. Raises InvalidArgumentError.
    """
    return _slice("slice", input, axes, {"starts": starts, "ends": ends}, name)


def strided_slice(input, axes, starts, ends, strides, name=None):
    """As slice, with a step along each dim, which may be negative. Op strided_slice."""
    return _slice("strided_slice", input, axes, {"starts": starts, "ends": ends, "strides": strides}, name)


def _slice(op_type, input, axes, places, name):
    helper = LayerHelper(op_type, name=name)
    inputs = {"Input": check_variable(input, "input", op_type)}
    attrs, flags = {"axes": list(axes)}, [1] * len(axes)
    for argument, value in places.items():
        given = int_list(helper, value, argument)
        slot = argument.capitalize()
        inputs |= {f"{slot}Tensor": given.tensor, f"{slot}TensorList": given.tensors or None}
        attrs[argument] = given.values if given.tensor is None else [-1] * len(axes)
        if given.tensor is not None:
            flags = [-1] * len(axes)
        elif given.tensors:
            flags = [-1 if hasattr(v, "desc") else f for v, f in zip(value, flags, strict=True)]
    return helper.apply(op_type, inputs, attrs | {"infer_flags": flags})


def gather(input, index, overwrite=True, name=None):
    """Rows of input by number: index is int32 or int64 [n] or [n, 1]. Op gather.

    overwrite is accepted for old programs: gradients of a row that is taken twice always add up.
    """
    inputs = {"X": check_variable(input, "input", "gather"), "Index": _index(index, "gather")}
    return LayerHelper("gather", name=name).apply("gather", inputs)


def gather_nd(input, index, name=None):
    """input[index[..., 0], index[..., 1], ...] for each place that the last dim of index holds. Op gather_nd."""
    inputs = {"X": check_variable(input, "input", "gather_nd"), "Index": _index(index, "gather_nd")}
    return LayerHelper("gather_nd", name=name).apply("gather_nd", inputs)


def scatter(input, index, updates, name=None, overwrite=True):
    """input, with row index[i] replaced by row i of updates; overwrite False: rows named twice add up. Op scatter."""
    inputs = {
        "X": check_variable(input, "input", "scatter"),
        "Ids": _index(index, "scatter"),
        "Updates": check_variable(updates, "updates", "scatter"),
    }
    return LayerHelper("scatter", name=name).apply("scatter", inputs, {"overwrite": overwrite})


def scatter_nd_add(ref, index, updates, name=None):
    """ref, with updates added at the places that the last dim of index holds. Op scatter_nd_add."""
    inputs = {
        "X": check_variable(ref, "ref", "scatter_nd_add"),
        "Index": _index(index, "scatter_nd_add"),
        "Updates": check_variable(updates, "updates", "scatter_nd_add"),
    }
    return LayerHelper("scatter_nd_add", name=name).apply("scatter_nd_add", inputs)


def _index(index, layer):
    return check_variable(index, "index", layer, {"int32", "int64"})


def topk(input, k, name=None):
    """(values, int64 places) of the k largest elements along the last dim, largest first. Op top_k.

    k: an int, or an integer Variable of one element.
    """
    inputs, attrs = {"X": check_variable(input, "input", "topk")}, {}
    if isinstance(k, int):
        attrs["k"] = k
    else:
        inputs["K"] = check_variable(k, "k", "topk", {"int32", "int64"})
    values, places = LayerHelper("top_k", name=name).apply("top_k", inputs, attrs)
    places.stop_gradient = True
    return values, places


def argsort(input, axis=-1, descending=False, name=None):
    """(sorted values, int64 places) along `axis`. Op argsort."""
    check_variable(input, "input", "argsort")
    attrs = {"axis": axis, "descending": descending}
    values, places = LayerHelper("argsort", name=name).apply("argsort", {"X": input}, attrs)
    places.stop_gradient = True
    return values, places


def where(condition, x=None, y=None, name=None):
    """x where condition, else y, all of one shape; without x and y: int64 [n, rank], the places where it is true.

    Ops where, where_index. Raises InvalidArgumentError.
    """
    check_variable(condition, "condition", "where", {"bool"})
    helper = LayerHelper("where", name=name)
    if x is None and y is None:
        return helper.apply("where_index", {"Condition": condition}, stop_gradient=True)
    inputs = {"Condition": condition, "X": check_variable(x, "x", "where"), "Y": check_variable(y, "y", "where")}
    return helper.apply("where", inputs)
