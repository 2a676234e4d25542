"""The gradient ops of a recorded call: its symbolic GradOps, resolved to saved tensors and incoming gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from oprack.autograd.backward_code import BackwardGenerator
from oprack.cache import Cache
from oprack.eager_tensor import Tensor, new_tensor
from oprack.errors import NotDifferentiableError, PreconditionNotMetError
from oprack.interpreter.devices import filled_array
from oprack.op.desc_rules import make_grad_ops, read_outputs
from oprack.op.grad import GradOp, SlotRef
from oprack.packs.index import gradient_info
from oprack.packs.manager import default_manager
from oprack.records import dataclass
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.tensor.meta import TensorMeta, tensor_meta
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.eager_tensor import Node
    from oprack.interpreter.bound_expr import BoundExpr

_SHAPES = 256  # bounds the cache of stand-ins for tensors of which only the shape is read
Source = tuple[str, Any]
"""("saved", position in node.saved), ("grad", position among the outputs), ("temporary", label) or ("none", None)."""


@dataclass(frozen=True)
class Step:
    """One gradient op.

    Attributes:
        grad: The symbolic op.
        sources: Where its inputs come from, by slot.
        targets: Where its outputs go, by slot: a position among the forward inputs, a label of a temporary, or None.
    """

    grad: GradOp
    sources: dict[str, list[Source]]
    targets: dict[str, list[int | str | None]]


class BackwardRule:
    """How the gradients of a call's inputs are computed from those of its outputs.

    Attributes:
        wrt: Flat positions of the arguments that require gradients.
        outputs: Flat positions of the outputs that receive gradients.
        saved: The forward values that the gradient ops read: ("in" or "out", position, whether the values are needed or
            only shape and LoD).
        quick: The generated function for the usual case (one output, create_graph=False), once it exists.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, bound: BoundExpr, wrt: Sequence[int], visible: Sequence[int]) -> None:
        self.bound = bound
        self.wrt = _differentiable(bound.metas, wrt)
        self.outputs = _differentiable(bound.outputs, visible)
        self.differentiable = bound.expr.info.grad_op_maker is not None
        self.saved: list[tuple[str, int, bool]] = []
        self.steps: list[Step] = []
        # By create_graph and which outputs receive gradients. Freed with the rule, which lives as long as the generated
        # call.
        self._compiled: dict[Any, Callable[..., Any]] = {}
        self._hollows = Cache(_SHAPES)
        if self.differentiable:
            self.positions = {"in": _positions(bound.desc.inputs), "out": _positions(bound.desc.outputs)}
            grads = [g for g in make_grad_ops(bound.expr.info, bound.desc) if not g.restores]
            self._drop_unread_outputs(grads)
            self._build(grads)

    def _drop_unread_outputs(self, grads: Sequence[GradOp]) -> None:
        """Restrict the outputs to those whose gradient is read by a gradient op, in the order of the op's slots."""
        read = read_outputs(grads)
        flat = [j for slot, places in self.positions["out"].items() if slot in read for j in places]
        self.outputs = [j for j in flat if j in self.outputs]

    @property
    def name(self) -> str:
        """Type of the op."""
        return self.bound.expr.type

    @property
    def empty(self) -> bool:
        """Whether no gradient flows back through the call, by the op's definition."""
        return not (self.wrt and self.outputs) or (self.differentiable and not self.steps)

    def _build(self, grads: Sequence[GradOp]) -> None:
        read: set[str] = set()
        # In reverse, since an op is kept only if the caller or a later op that is kept reads what it computes.
        for grad in reversed(grads):
            targets = {slot: self._targets(ref) for slot, ref in grad.outputs.items()}
            named = {t for ts in targets.values() for t in ts if isinstance(t, str)}
            if any(isinstance(t, int) for ts in targets.values() for t in ts) or not read.isdisjoint(named):
                info = gradient_info(default_manager(), grad.type, self.bound.expr.type)
                sources = {
                    slot: refs
                    for slot, ref in grad.inputs.items()
                    if (refs := self._sources(ref, slot not in info.no_need_buffer_vars))
                }
                read.update(s[1] for ss in sources.values() for s in ss if s[0] == "temporary")
                self.steps.insert(0, Step(grad, sources, targets))

    def _flat(self, ref: SlotRef, side: str) -> list[int]:
        positions = self.positions[side].get(ref.slot, [])
        return positions if ref.index is None else positions[ref.index : ref.index + 1]

    def _targets(self, ref: SlotRef) -> list[int | str | None]:
        if ref.role == "temporary":
            return [ref.slot]
        return [i if i in self.wrt else None for i in self._flat(ref, "in")]

    def _sources(self, ref: SlotRef, whole: bool) -> list[Source]:
        if ref.role == "temporary":
            return [("temporary", ref.slot)]
        if ref.role == "output_grad":
            return [
                ("grad", self.outputs.index(j)) if j in self.outputs else ("none", None) for j in self._flat(ref, "out")
            ]
        side = "in" if ref.role == "input" else "out"
        return [("saved", self._save(side, i, whole)) for i in self._flat(ref, side)]

    def _save(self, side: str, i: int, whole: bool) -> int:
        for k, (s, j, w) in enumerate(self.saved):
            if (s, j) == (side, i):
                # If another gradient op reads only the shape, the values serve both.
                if whole and not w:
                    self.saved[k] = (side, i, True)
                return k
        self.saved.append((side, i, whole))
        return len(self.saved) - 1

    # Backward ---------------------------------------------------------------------------------------------------------
    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the arguments in `wrt`.

        Args:
            node: The recorded call.
            gradients: Those of the outputs; None where none arrived.
            apply: The interpreter's function that calls a gradient op.
            plain: Whether that is the eager interpreter itself, without others around it.
            create_graph: Whether the gradients will be differentiated.

        Returns:
            A tensor or None for each argument in `wrt`.
        """
        key = (create_graph, True) if len(gradients) == 1 else (create_graph, *[g is not None for g in gradients])
        function = self._compiled.get(key)
        if function is None:
            if not self.differentiable:
                info = self.bound.expr.info
                raise NotDifferentiableError(
                    f"op {info.type} (pack {info.pack}) has no gradient, but a gradient of its result is asked for; "
                    "give it a make_grad (`empty_grad` if nothing should flow back), or detach() its inputs"
                )
            function = self._compiled[key] = BackwardGenerator(self, key[1:], create_graph).generate()
            if key == (False, True):
                self.quick = function
        if node.saved is None:
            raise PreconditionNotMetError(
                f"backward runs a second time through op {node.name}, whose saved tensors were let go of after the "
                "first; call backward(retain_graph=True) the first time"
            )
        results: Sequence[Any] = function(node, gradients, apply, plain)
        return results

    def may_be_complex(self, i: int) -> bool:
        """Whether a real argument may get a complex gradient, because gradient ops see only complex values."""
        argument = self.bound.metas[i]
        return _kind(argument) == "f" and any(_kind(k) == "c" for k in self.bound.outputs)

    def real_part(self, gradient: Tensor) -> Tensor:
        """The gradient of a real argument, which can't move along the imaginary axis, so only the real part counts.

        A gradient that is part of a graph is returned unchanged, since the real part taken here would not be recorded.
        """
        meta = gradient._meta
        if _kind(meta) != "c" or gradient._node is not None:
            return gradient
        value = gradient._value.real.copy()
        return new_tensor(value, tensor_meta(meta.container, value.dtype, meta.place, meta.lod_level), gradient._lod)

    def zeros(self, node: Node, which: int) -> Tensor:
        """A zero gradient, for an output that receives none."""
        k = self.bound.outputs[self.outputs[which]]
        assert k is not None
        return new_tensor(
            filled_array(node.shapes[which], k.dtype, k.place, 0), tensor_meta(LoDTensor, k.dtype, k.place)
        )

    def hollow(self, k: int, entry: Any) -> Tensor:
        """A stand-in for a saved tensor of which only shape and LoD are read."""
        side, i, _ = self.saved[k]
        like = self.bound.metas[i] if side == "in" else self.bound.outputs[i]
        assert like is not None
        shape, lod = entry
        tensor: Tensor | None = self._hollows[k, shape] if not lod else None
        if tensor is None:
            value = ShapeOnly(SimpleNamespace(shape=shape, dtype=like.dtype), f"the gradient of op {self.name}")
            tensor = new_tensor(value, tensor_meta(LoDTensor, like.dtype, like.place, like.lod_level), lod)
            if not lod:
                self._hollows[k, shape] = tensor
        return tensor

    def check_input(self, node: Node, i: int, tensor: Tensor) -> None:
        """Raise PreconditionNotMetError if a saved argument was overwritten since."""
        if tensor._version != node.versions.get(i, 0):
            name = f" ({tensor.name!r})" if tensor.name else ""
            raise self._overwritten(f"input {self.bound.names_in[i]}{name}", tensor._written_by)

    def check_outputs(self, node: Node) -> None:
        """Raise PreconditionNotMetError if a saved output was overwritten since."""
        for side, j, whole in self.saved:
            if side == "out" and whole and (writer := node.overwriter(j)) is not None:
                raise self._overwritten(f"output {self.bound.names_out[j]}", writer)

    def _overwritten(self, what: str, by: str) -> PreconditionNotMetError:
        return PreconditionNotMetError(
            f"the gradient of op {self.bound.expr.type} needs its {what}, which was changed in place since by {by}; "
            "use the operation that makes a new tensor, change it after backward(), or change a copy (x.clone())"
        )


def _differentiable(metas: Sequence[TensorMeta | None], positions: Iterable[int]) -> list[int]:
    """The positions that hold a tensor whose dtype has gradients."""
    return [i for i in positions if (meta := metas[i]) is not None and meta.differentiable]


def _positions(slots: dict[str, list[str]]) -> dict[str, list[int]]:
    positions, k = {}, 0
    for slot, names in slots.items():
        positions[slot] = list(range(k, k + len(names)))
        k += len(names)
    return {s: ps for s, ps in positions.items() if ps and any(n != EMPTY_VAR for n in slots[s])}


def _kind(meta: TensorMeta | None) -> str:
    """NumPy's letter for the kind of a tensor's dtype; "" when there is none."""
    return "" if meta is None or meta.dtype is None else str(meta.dtype.kind)
