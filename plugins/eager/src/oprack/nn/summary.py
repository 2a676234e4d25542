"""summary: the parts of a network with the shapes of what they give and the number of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.eager_tensor.devices import filled_array
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.modes import no_grad
from oprack.nn.module import Module
from oprack.tensor import numpy_dtype


def summary(net: Module, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print a table of the parts of a network: path, class, shape of the result, number of parameters.

    The network runs once in evaluation mode, with zeros or with the given input.

    Args:
        net: The network.
        input_size: Sizes of its input, such as [1, 3, 32, 32]; for several inputs a list of such lists.
        dtypes: The dtype of each input; default: float32.
        input: A tensor, or a list of them, instead of input_size.

    Returns:
        "total_params" and "trainable_params".

    Raises:
        InvalidArgumentError: There are neither sizes nor an input.
    """
    inputs = _inputs(input_size, dtypes, input)
    rows: list[tuple[str, str, str, str]] = []
    removers = []
    for path, module in net.named_modules():
        removers.append(module.register_forward_hook(_hook(path or type(net).__name__, rows)))
    modes = [(module, module.training) for module in net.modules()]
    try:
        with no_grad():
            net.eval()(*inputs)
    finally:
        for module, training in modes:
            module.__dict__["training"] = training
        for remove in removers:
            remove()
    total = sum(p.size for p in net.parameters())
    trainable = sum(p.size for p in net.parameters() if p.requires_grad)
    print(_table(rows, total, trainable))
    return {"total_params": total, "trainable_params": trainable}


def _inputs(sizes: Any, dtypes: Any, given: Any) -> list[Any]:
    if given is not None:
        return list(given) if isinstance(given, list | tuple) else [given]
    if not isinstance(sizes, list | tuple) or not sizes:
        raise InvalidArgumentError(
            f"summary: input_size is {sizes!r}; expected sizes such as [1, 3, 32, 32], or input="
        )
    several = sizes if isinstance(sizes[0], list | tuple) else [sizes]
    names = dtypes if isinstance(dtypes, list | tuple) else [dtypes or "float32"] * len(several)
    return [
        to_tensor(filled_array(tuple(int(n) for n in size), numpy_dtype(name), CPU, 0.0))
        for size, name in zip(several, names, strict=True)
    ]


def _hook(path: str, rows: list[tuple[str, str, str, str]]) -> Any:
    def note(module: Module, args: Any, result: Any) -> None:
        count = sum(p.size for p in module._parameters.values())
        rows.append((path, type(module).__name__, _sizes(result), f"{count:,}"))

    return note


def _sizes(result: Any) -> str:
    if isinstance(result, Tensor):
        return str(list(result.shape))
    if isinstance(result, list | tuple):
        return ", ".join(map(_sizes, result))
    return type(result).__name__


def _table(rows: Sequence[tuple[str, str, str, str]], total: int, trainable: int) -> str:
    head = ("part", "class", "result", "parameters")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*(line.rstrip() for line in lines), f"{total:,} parameters, {trainable:,} of them trainable"])
