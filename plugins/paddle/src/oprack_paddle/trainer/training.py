"""What stands in paddle itself for training: gradients, files, places and ParamAttr."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any

import numpy as np
import oprack
from oprack.io.atomic import write_atomic
from oprack.layers import unique_name

from oprack_paddle.functions._tools import dtype_name
from oprack_paddle.functions._tools import is_tensor as _is_tensor
from oprack_paddle.trainer import pickles


class dtype(str):
    """The name of a dtype: what paddle.float32 is."""

    __slots__ = ()


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False, no_grad_vars: Any = None,
) -> Any:  # fmt: skip
    """The gradients of outputs with respect to inputs, as a list."""
    outs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    starts = grad_outputs if isinstance(grad_outputs, list | tuple) else [grad_outputs] * len(outs)
    starts = [oprack.ones_like(o) if g is None else g for o, g in zip(outs, starts, strict=True)]
    ins = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    keep = create_graph if retain_graph is None else retain_graph
    found = oprack.grad(outs, ins, starts, retain_graph=keep, create_graph=create_graph, allow_unused=allow_unused)
    return list(found)


_NAME_TABLE = "StructuredToParameterName@@"


def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Write a state, a tensor, or lists and dicts of them as Paddle does, so that Paddle reads the file as well.

    Args:
        obj: What to save; a program is written by its own bytes.
        path: The file, or an open binary one.
        protocol: Taken and not used: files have the form of protocol 4.
        configs: Settings of Paddle, which change nothing here.

    Raises:
        InvalidArgumentError: There is something else in it than tensors, arrays, numbers and text.
    """
    file = BytesIO()
    if hasattr(obj, "serialize"):
        file.write(obj.serialize())
    else:
        pickles.write(_for_paddle(obj), file)
    if hasattr(path, "write"):
        path.write(file.getvalue())
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    write_atomic(path, file.getvalue())


def _for_paddle(obj: Any) -> Any:
    """The object as Paddle puts it into a file: a state with the names of its tensors, others as (name, array)."""
    if isinstance(obj, dict) and obj and any(map(_is_tensor, obj.values())):
        names = {key: _name(value) for key, value in obj.items() if _is_tensor(value)}
        return {**{key: _arrays(value) for key, value in obj.items()}, _NAME_TABLE: names}
    return _named(obj)


def _arrays(value: Any) -> Any:
    return np.asarray(value) if _is_tensor(value) else _named(value)


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (
            type(value)([_named(item) for item in value]) if type(value) in (list, tuple) else list(map(_named, value))
        )
    return (_name(value), np.asarray(value)) if _is_tensor(value) else value


def _name(value: Any) -> str:
    """A tensor's name; one for those that have none, as Paddle gives one to each."""
    return value.name or unique_name.generate("generated_tensor")


def load(path: Any, **configs: Any) -> Any:
    """Read what save wrote, here or in Paddle; nothing of the file is called.

    Args:
        path: The file, or an open binary one.
        configs: `return_numpy=True` gives arrays in place of tensors, `keep_name_table=True` leaves the names of
            parameters in a state.

    Returns:
        The object.

    Raises:
        FileNotFoundError: There is no such file.
        CorruptParameterError: It is no file of save, or asks for something else than data.
    """
    wanted = np.asarray if configs.get("return_numpy") else oprack.to_tensor
    if not hasattr(path, "read") and not os.path.exists(path):
        raise FileNotFoundError(f"load: there is no file {os.fspath(path)!r}")
    if not hasattr(path, "read") and pickles.is_zip(path):  # of oprack.save
        return _tensors(oprack.load(path), wanted)
    if hasattr(path, "read"):
        found = pickles.read(path, getattr(path, "name", "the file"))
    else:
        with open(path, "rb") as file:
            found = pickles.read(file, os.fspath(path))
    if isinstance(found, dict) and isinstance(found.get(_NAME_TABLE), dict):
        names = found[_NAME_TABLE] if configs.get("keep_name_table") else found.pop(_NAME_TABLE)
        return {key: wanted(value) if key in names else _tensors(value, wanted) for key, value in found.items()}
    return _tensors(found, wanted)


def _tensors(value: Any, wanted: Any) -> Any:
    """Tensors for what Paddle writes for them, and for arrays of files that oprack wrote."""
    if isinstance(value, dict):
        return {key: _tensors(item, wanted) for key, item in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], np.ndarray):
        return wanted(value[1])
    if isinstance(value, list | tuple):
        return type(value)([_tensors(item, wanted) for item in value])
    return value


def CUDAPinnedPlace() -> Any:
    """Memory of the host that a GPU reads fast."""
    return oprack.CUDAPinnedPlace()


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print the layers of a net, and how many parameters they have."""
    total = sum(int(p.size) for p in net.parameters())
    trained = sum(int(p.size) for p in net.parameters() if p.requires_grad)
    if input is None and input_size is not None:
        sizes = [input_size] if not isinstance(input_size[0], list | tuple) else list(input_size)
        kinds = [dtypes] * len(sizes) if not isinstance(dtypes, list | tuple) else list(dtypes)
        input = [
            oprack.ones([1 if s in (None, -1) else s for s in size], dtype=dtype_name(k) or "float32")
            for size, k in zip(sizes, kinds, strict=True)
        ]
    given = input if isinstance(input, list | tuple) else [] if input is None else [input]
    print(oprack.summary(net, *given) if given else net)
    return {"total_params": total, "trainable_params": trained}


def flops(net: Any, input_size: Any, custom_ops: Any = None, print_detail: bool = False) -> int:
    """The multiplications of the convolutions and products of a net for one input."""
    total, handles = [0], []

    def count(layer: Any, inputs: Any, outputs: Any) -> None:
        kind = type(layer)
        if custom_ops and kind in custom_ops:
            layer.total_ops = getattr(layer, "total_ops", 0)
            custom_ops[kind](layer, inputs, outputs)
            found = int(layer.total_ops)
        else:
            found = _flops_of(layer, outputs)
        total[0] += found
        if print_detail and found:
            print(f"{layer.full_name()}: {found}")

    for part in net.modules():
        handles.append(part.register_forward_hook(count))
    training = net.training
    net.eval()
    with oprack.no_grad():
        net(oprack.ones([1 if s in (None, -1) else s for s in input_size], dtype="float32"))
    net.train(training)
    for remove in handles:
        remove()
    print(f"Total Flops: {total[0]}     Total Params: {sum(int(p.size) for p in net.parameters())}")
    return total[0]


def _flops_of(layer: Any, outputs: Any) -> int:
    """The multiplications of a layer itself, by its weight and how often it is applied."""
    weight = layer._parameters.get("weight")
    if weight is None or not hasattr(outputs, "shape"):
        return 0
    if weight.ndim == 2:
        return int(weight.size) * int(outputs.size) // outputs.shape[-1]
    if weight.ndim < 3:
        return 2 * int(outputs.size)
    bias = 0 if layer._parameters.get("bias") is None else 1
    return int(outputs.size) * (int(weight.size) // weight.shape[0] + bias)


def get_cuda_rng_state() -> list[Any]:
    """The states of random numbers of GPUs, of which there are none here."""
    return []


def set_cuda_rng_state(state_list: Any) -> None:
    """Go back to states of random numbers of GPUs, of which there are none here."""
