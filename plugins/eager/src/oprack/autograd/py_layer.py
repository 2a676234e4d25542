"""PyLayer: a call with a gradient written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.autograd.custom_rule import CustomRule, attach
from oprack.autograd.starting_gradients import zero_gradient
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.interpreter.modes import is_grad_enabled, no_grad
from oprack.python.containers import with_members


class PyLayerContext:
    """What forward leaves for backward: tensors by save_for_backward, anything else as attributes."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward."""
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        """What save_for_backward kept."""
        return self._saved

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept, under PyTorch's name."""
        return self._saved


class PyLayer:
    """Base of calls whose gradient is written by hand: derive from it, define both methods, call `apply`.

    class Double(oprack.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = Double.apply(x)
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute a tensor, or a tuple of them; nothing in it is recorded.

        Args:
            ctx: Keeps what backward needs.
            args: The arguments of apply.
            kwargs: Its keyword arguments.

        Returns:
            The results.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError("a PyLayer must define forward(ctx, ...)")

    @staticmethod
    def backward(ctx: PyLayerContext, *grads: Any) -> Any:
        """Compute the gradient of each tensor among the arguments of apply, None for none.

        Args:
            ctx: What forward kept.
            grads: Gradients of the results, zeros for those that nothing reads.

        Returns:
            The gradients, in the order of the arguments.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError("a PyLayer must define backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call forward, and record backward for tensors that require gradients.

        Args:
            args: Tensors and anything else.
            kwargs: Further arguments, whose tensors get no gradient.

        Returns:
            What forward returns.

        Raises:
            InvalidArgumentError: forward returns something that is no tensor.
        """
        ctx = PyLayerContext()
        with no_grad():
            found = cls.forward(ctx, *args, **kwargs)
        outputs = list(found) if isinstance(found, tuple | list) else [found]
        inputs = [a for a in args if isinstance(a, Tensor)]
        if not (is_grad_enabled() and any(x.requires_grad for x in inputs)):
            return found
        for i, y in enumerate(outputs):
            if not isinstance(y, Tensor):
                raise InvalidArgumentError(f"{cls.__name__}.forward: result {i} is {y!r}; expected a tensor")
            if any(y is x for x in inputs):
                outputs[i] = y.detach()
        recorded = [i for i, x in enumerate(inputs) if x.requires_grad]
        floating = [i for i, y in enumerate(outputs) if y._meta.differentiable]
        rule = CustomRule(cls.__name__, len(floating), _backward_of(cls, ctx, len(inputs), recorded, outputs, floating))
        if floating:
            attach(rule, [inputs[i] for i in recorded], [outputs[i] for i in floating], None)
        return with_members(found, outputs) if isinstance(found, tuple | list) else outputs[0]


def _backward_of(
    cls: type[PyLayer], ctx: PyLayerContext, count: int, recorded: Sequence[int], outputs: Sequence[Any], floating: Any
) -> Any:
    forms = [(y.shape, y._meta) for y in outputs]

    def backward(saved: Any, gradients: Sequence[Any]) -> Sequence[Any]:
        arrived = dict(zip(floating, gradients, strict=True))
        given = [zero_gradient(*form) if arrived.get(i) is None else arrived[i] for i, form in enumerate(forms)]
        with no_grad():
            found = cls.backward(ctx, *given)
        results = list(found) if isinstance(found, tuple | list) else [found]
        if len(results) != count:
            raise InvalidArgumentError(
                f"{cls.__name__}.backward: it returned {len(results)} gradients; expected {count}, one for each tensor "
                "that apply was called with, None for those without"
            )
        return [results[i] for i in recorded]

    return backward
