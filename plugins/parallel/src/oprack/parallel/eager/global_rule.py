"""GlobalRule: gradients of calls with global tensors, from those of the calls that ran on the parts.

No rule of its own says how gradients lie: an argument that the signature split has a gradient split alike; one that was
a partial sum has a whole one; of one that was whole, each rank has a summand if the ranks computed different things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import UnimplementedError
from oprack.interpreter.eager import EAGER
from oprack.parallel.eager.global_tensor import box_part, boxed, global_tensor
from oprack.parallel.layouts.layout import grad_layout, input_grad_layout, layout_of, output_grad_layout
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.eager_tensor import Node
    from oprack.parallel.eager.global_plan import Plan


class GlobalRule:
    """How the gradients of a call's arguments are computed, as BackwardRule for calls of one process.

    Args:
        plan: What the call did.
        inner: The rule of the call that ran on the parts.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, plan: Plan, inner: Any) -> None:
        self.plan, self.inner = plan, inner
        self.name = f"op {plan.expr.type}"
        self.outputs: list[int] = inner.outputs
        self.wrt: list[int] = inner.wrt
        self._arriving = [output_grad_layout(plan.choice.outputs[j]) for j in self.outputs]
        # Those that are differentiated are there.
        read = [layout for i in self.wrt if (layout := plan.choice.inputs[i]) is not None]
        self._leaving = [input_grad_layout(layout, plan.choice.splits) for layout in read]

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Gradients of the arguments in `wrt`, each in the layout that its argument had; see BackwardRule.run."""
        inner = self._saved(node, create_graph)
        parts = [None if g is None else self._part(k, g) for k, g in enumerate(gradients)]
        found = self.inner.run(inner, parts, EAGER.apply, True, False)
        return [None if g is None else self._given_back(k, g) for k, g in enumerate(found)]

    def _saved(self, node: Node, create_graph: bool) -> Any:
        """What the call saved; refuses to record the gradients."""
        if create_graph:
            raise UnimplementedError(
                f"{self.name}: gradients of gradients of global tensors are not recorded; compute them on one rank"
            )
        return node.saved

    def _part(self, k: int, gradient: Tensor) -> Tensor:
        """This rank's part of the gradient of an output, as the call on the parts had it."""
        layout, target = layout_of(gradient._meta), self._arriving[k]
        if layout is None:  # a tensor that the user passed to backward, the same on each rank
            layout = target.placement.layout(["B"] * len(target.sbps))
        value = box_part(gradient._value, gradient.shape, layout, target)
        plan = self.plan
        if (
            plan.share != 1.0
            and plan.choice.outputs[self.outputs[k]].is_partial
            and not isinstance(value, SelectedRows)
        ):
            value = value * np.asarray(plan.share, value.dtype)
        return new_tensor(value, meta_of_value(value, gradient._meta.place))

    def _given_back(self, k: int, gradient: Tensor) -> Tensor:
        i = self.wrt[k]
        leaving, source = self._leaving[k], self.plan.sources[i]
        assert source is not None
        made = global_tensor(gradient._value, leaving.meta(gradient._meta.without_grad), self.plan.shapes[i])
        return boxed(made, grad_layout(source, leaving))
