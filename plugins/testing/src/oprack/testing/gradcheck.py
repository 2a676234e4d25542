"""gradcheck: gradients of a function of tensors against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.autograd.walk import grad
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.modes import no_grad


def gradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    step: float = 1e-6,
    tolerance: float = 1e-5,
    order: int = 1,
    seed: int = 0,
) -> list[str]:
    """What differs between the gradients of `function(*inputs)` and central differences, in a random direction each.

    The function's floating results, times random cotangents, are summed up.

    Args:
        function: A function of tensors that returns tensors, in lists, tuples and dicts.
        inputs: Tensors or arrays; the floating ones are taken as float64.
        step: Half the distance of the two points of a difference.
        tolerance: What gradient and difference may differ by, as a part of the difference where it is larger than 1.
        order: 2 checks the gradients of the gradients as well.
        seed: Of directions and cotangents.

    Returns:
        A text for each difference; [] when all agree.

    Raises:
        InvalidArgumentError: No input or no result is floating.
    """
    generator = np.random.default_rng(seed)
    given = [_wide(x) for x in inputs]
    wanted = [i for i, x in enumerate(given) if x.requires_grad]
    outputs = _floating(function(*given))
    if not wanted or not outputs:
        raise InvalidArgumentError("gradcheck: no input, or no result, is a floating tensor; nothing can be compared")
    cotangents = [generator.standard_normal(y.shape) for y in outputs]

    def loss(*moved: Tensor) -> list[Tensor]:
        return [(y * Tensor.like(c, y)).sum() for y, c in zip(_floating(function(*moved)), cotangents, strict=True)]

    found = _compare(loss, given, wanted, generator, step, tolerance, "gradient")
    if order > 1:
        direct = {i: generator.standard_normal(given[i].shape) for i in wanted}

        def slopes(*moved: Tensor) -> list[Tensor]:
            xs = [moved[i] for i in wanted]
            losses = [y for y in loss(*moved) if y.requires_grad]
            firsts = grad(losses, xs, create_graph=True, allow_unused=True)
            pairs = zip(wanted, firsts, strict=True)
            return [(g * Tensor.like(direct[i], g)).sum() for i, g in pairs if g is not None and g.requires_grad]

        if slopes(*given):
            found += _compare(slopes, given, wanted, generator, step, tolerance, "second gradient")
    return found


def _compare(
    losses: Callable[..., list[Tensor]],
    given: Sequence[Tensor],
    wanted: Sequence[int],
    generator: np.random.Generator,
    step: float,
    tolerance: float,
    what: str,
) -> list[str]:
    outputs = [y for y in losses(*given) if y.requires_grad]
    gradients = grad(outputs, [given[i] for i in wanted], allow_unused=True) if outputs else [None] * len(wanted)
    found = []
    for i, gradient in zip(wanted, gradients, strict=True):
        x = given[i]
        direction = generator.standard_normal(x.shape)
        ends = []
        for sign in (1, -1):
            moved = list(given)
            moved[i] = to_tensor(x.numpy() + sign * step * direction, lod=x.lod, requires_grad=True)
            with no_grad() if what == "gradient" else _nothing():
                ends.append(sum(float(y) for y in losses(*moved)))
        numeric = (ends[0] - ends[1]) / (2 * step)
        terms = (0.0 if gradient is None else gradient.numpy()) * direction
        analytic = float(np.sum(terms))
        scale = max(1.0, abs(numeric), 1e-3 * float(np.abs(terms).sum()))  # relative to the terms where they cancel
        if not abs(analytic - numeric) <= tolerance * scale:
            found.append(f"{what} of input {i}: {analytic:.8g} in a random direction, differences give {numeric:.8g}")
    return found


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _wide(x: Any) -> Tensor:
    found = to_tensor(x)
    if found.dtype in ("float16", "bfloat16", "float32"):
        found = to_tensor(x, dtype="float64")
    if found.dtype == "float64":
        found.requires_grad = True
    return found


def _floating(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result] if result.dtype == "float64" and not result.is_sparse else []
    return [y for r in result or () for y in _floating(r)] if isinstance(result, list | tuple) else []
