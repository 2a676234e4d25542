"""The eager Tensor: a value with a gradient, and the node of the graph that computed it."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from oprack.eager_tensor.meta import TensorMeta, meta_of_value, tensor_meta
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.tensor.arrays import Memory
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.place import Place
from oprack.tensor.selected_rows import SelectedRows

if TYPE_CHECKING:
    from oprack.eager_tensor.methods import TensorMethods
    from oprack.layers.operators import Operators

    class _Installed(Operators["Tensor"], TensorMethods):
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
else:
    _Installed = object


class Size(int):
    """A number of elements, which PyTorch has as a method: `x.size(0)`, `x.size()`."""

    shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Size:
        size = super().__new__(cls, math.prod(shape))
        size.shape = shape
        return size

    def __call__(self, dim: int | None = None) -> Any:
        """The size of a dim, or of all."""
        return self.shape if dim is None else self.shape[dim]

    def __reduce__(self) -> Any:
        return int, (int(self),)


class TensorType(type):
    """The class of Tensor, on which oprack.functional installs that `Tensor.reshape` is found in the packs."""


class Tensor(_Installed, metaclass=TensorType):
    """An array, a sparse value or an array of tensors, with LoD and gradient; made by `oprack.to_tensor`.

    Operators, indexing and methods call ops. A call is recorded when one of its arguments has requires_grad;
    `backward()` then accumulates into `grad` of the leaves that the result was computed from.

    Attributes:
        name: Name for messages.
    """

    __slots__ = ("__dict__", "__weakref__", "_meta", "_node", "_value")
    _value: Any
    _meta: TensorMeta
    _node: Any
    # Defaults on the class, so that a tensor without LoD, gradient, shared memory or name stores none of them.
    _lod: Any = []
    _grad: Tensor | None = None
    _lent = False  # whether it is a gradient that nobody but an optimizer may read where it lies; see `_keep`
    _memory: Memory | None = None
    _logical_shape: tuple[int, ...] = ()
    _rows: Any = None  # of a global tensor that is split by sequences, how they lie
    name: str | None = None

    # What it is -------------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """Dims; for a sparse value, those of the dense array; for a global tensor, those of the whole."""
        if self._meta.layout is not None:
            return self._logical_shape
        if self._meta.container is LoDTensorArray:
            return (len(self._value),)
        return tuple(getattr(self._value, "shape", ()))

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; called with a dim it is the size of that dim, as PyTorch has it."""
        return Size(self.shape)

    @property
    def lod_level(self) -> int:
        """Number of LoD levels; 0 for a tensor without sequences."""
        return self._meta.lod_level

    @property
    def dtype(self) -> str | None:
        """Name of the dtype, for example "float32"."""
        return self._meta.name

    @property
    def place(self) -> Place:
        """The place whose memory holds the values."""
        return self._meta.place

    @property
    def lod(self) -> list[list[int]]:
        """Offsets per level, outermost first; [] for a tensor without LoD; for a global tensor, those of the whole."""
        return [list(level) for level in (self._lod if self._rows is None else self._rows.lod)]

    @property
    def is_sparse(self) -> bool:
        """Whether it holds SelectedRows, as gradients of sparse embeddings do."""
        return self._meta.container is SelectedRows

    @property
    def value(self) -> Any:
        """The LoDTensor, LoDTensorArray or sparse value, on the same memory; of a global tensor, the whole."""
        if self._meta.layout is not None:
            return self._meta.layout.whole_value(self)
        if self._meta.container is LoDTensor:
            return LoDTensor(self._value, self._lod, place=self._meta.place, check=False, shared=True)
        return self._value

    # Gradients --------------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether calls with this tensor are recorded. It can be cleared on leaves only."""
        return self._meta.grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == self._meta.grad:
            return
        if not value and not self.is_leaf:
            raise InvalidArgumentError(
                f"{self.describe()}: requires_grad can't be cleared on the result of a recorded call; use detach()"
            )
        if value and not self._meta.differentiable:
            raise InvalidArgumentError(f"{self.describe()}: only floating tensors have gradients; cast it first")
        self._meta = self._meta.with_grad if value else self._meta.without_grad
        # A fresh leaf, so that hooks and graphs from before requires_grad was cleared don't come back.
        self._node = Leaf(self) if value else None

    @property
    def stop_gradient(self) -> bool:
        """The opposite of requires_grad, under Paddle's name."""
        return not self._meta.grad

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.requires_grad = not value

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded call."""
        return self._node is None or type(self._node) is Leaf

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated for this leaf; None before the first one."""
        if self._grad is not None:
            self._grad._keep()
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (not isinstance(value, Tensor) or value.shape != self.shape):
            got = value.describe() if isinstance(value, Tensor) else repr(value)
            raise InvalidArgumentError(f"{self.describe()}: grad is {got}; expected None or a tensor of the same shape")
        self._grad = value

    def _keep(self) -> None:
        """Let a gradient that lies in lent memory, to which the next backward pass writes, have memory of its own."""
        if self._lent:
            self._value = self._value.copy()
            del self._lent

    def clear_grad(self) -> None:
        """Clear `grad`."""
        self._grad = None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Callable[[], None]:
        """Call a function when this tensor's gradient is complete; its result replaces the gradient.

        Args:
            hook: A function of the gradient. It returns the new gradient, or None to leave it as it is.

        Returns:
            A function that removes the hook.

        Raises:
            InvalidArgumentError: The tensor does not require gradients.
        """
        if self._node is None:
            raise InvalidArgumentError(f"{self.describe()}: a hook needs requires_grad=True")
        node, index = split_edge(self._node)
        if node.hooks is None:
            node.hooks = {}
        hooks = node.hooks.setdefault(index, {})
        # Hooks run in order of registration, which a dict preserves. One more than the largest key in use never
        # collides with a hook that is still registered, whichever were removed.
        key = max(hooks, default=0) + 1
        hooks[key] = hook

        def remove() -> None:
            hooks.pop(key, None)

        return remove

    def detach(self) -> Tensor:
        """A leaf without requires_grad on the same memory."""
        detached = new_tensor(self._value, self._meta.without_grad, self._lod)
        if self._meta.layout is not None:
            detached._logical_shape, detached._rows = self._logical_shape, self._rows
        # A write through either tensor must invalidate the gradients that saved the other.
        share_memory(detached, self)
        return detached

    # Memory -----------------------------------------------------------------------------------------------------------
    @property
    def _version(self) -> int:
        return 0 if self._memory is None else self._memory.version

    @property
    def inplace_version(self) -> int:
        """How often the memory was written to in place."""
        return self._version

    @property
    def _written_by(self) -> str:
        return "" if self._memory is None else self._memory.writer

    def require_writable(self, writer: str) -> None:
        """Refuse an in-place write to a leaf with requires_grad: once overwritten, it could not receive its gradient.

        Args:
            writer: The op that writes, for the message.

        Raises:
            PreconditionNotMetError: The tensor is such a leaf.
        """
        if type(self._node) is Leaf:
            raise PreconditionNotMetError(
                f"{writer} would change {self.describe()} in place, which has requires_grad and was not computed; "
                "do so inside oprack.no_grad()"
            )

    def _overwrite(self, value: Any, node: Any, writer: str) -> None:
        """Take over the result of an in-place op; gradients that saved the old value will see that it is gone."""
        if node is not None:
            self.require_writable(writer)
        self._replace(value, meta_of_value(value, self._meta.place, self._meta.lod_level), writer, node)

    def _replace(self, value: Any, new: TensorMeta, writer: str, node: Any = None) -> None:
        """Replace the value and its metadata; counts as a write to the memory."""
        memory = self._memory
        if memory is None:
            memory = self._memory = Memory()
        if self._node is not None and not self.is_leaf:
            lend(self._node, memory)
        memory.version += 1
        memory.writer = writer
        self._value = value
        if node is not None:
            self._node = node
            lend(node, memory)
        # From now on, calls that save this tensor also save its version.
        tracked = new.with_tracking
        if self._meta.layout is not None:
            tracked = self._meta.layout.meta(tracked)
        self._meta = tracked.with_grad if self._node is not None else tracked

    def describe(self) -> str:
        """Describe the tensor for messages, as "tensor 'w' float32[2, 3]"."""
        name = f" {self.name!r}" if self.name else ""
        kind = "" if self._meta.container is LoDTensor else f"{self._meta.container.__name__} "
        where = "" if self._meta.layout is None else f" in {self._meta.layout!r}"
        return f"tensor{name} {kind}{self.dtype}{list(self.shape)}{where}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = memo[id(self)] = type(self).__new__(type(self))
        copy.__setstate__(self.__getstate__())
        return copy

    def __copy__(self) -> Tensor:
        """Another object on the same memory, at the same place in the graph."""
        twin = type(self).__new__(type(self))
        twin._value, twin._meta, twin._node = self._value, self._meta, self._node
        twin.__dict__.update(self.__dict__)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """State for pickle and deepcopy: value, LoD, name and requires_grad, but neither gradient nor graph."""
        if not self.is_leaf:
            raise PreconditionNotMetError(f"{self.describe()} is the result of a recorded call; copy its detach()")
        attributes = {k: v for k, v in self.__dict__.items() if k not in ("_grad", "_memory", "_lod")}
        return {"value": self.value, "requires_grad": self.requires_grad, "own": attributes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        value = state["value"]
        self._node = None
        if isinstance(value, LoDTensor):
            self._value = value.array.copy(order="C")
            self._meta = tensor_meta(LoDTensor, value.array.dtype, value.place, len(value.lod))
            if value.lod:
                self._lod = value.lod
        else:
            self._value, self._meta = value, meta_of_value(value)
        self.__dict__.update(state["own"])
        self.requires_grad = state["requires_grad"]


def new_tensor(value: Any, meta: TensorMeta, lod: Any = (), of: type[Tensor] | None = None) -> Tensor:
    """Wrap a value whose metadata are known in a tensor outside of any graph; `of` is the subclass to create."""
    tensor = Tensor() if of is None else of.__new__(of)
    tensor._value, tensor._meta, tensor._node = value, meta, None
    if meta.lod_level:
        tensor._lod = lod
    return tensor


def share_memory(a: Tensor, b: Tensor) -> None:
    """Note that both may be on the same memory: a write to one counts as a write to the other."""
    memory = b._memory
    if memory is None:
        # Created when memory is first shared, since most tensors never need it.
        memory = b._memory = Memory()
        b._meta = b._meta.with_tracking
    if b._node is not None and type(b._node) is not Leaf:
        lend(b._node, memory)
    a._memory = memory
    a._meta = a._meta.with_tracking


class Rule(Protocol):
    """How gradients of a recorded call are computed: `BackwardRule` of ops, `JitRule`, `CustomRule` of other calls.

    Attributes:
        outputs: Numbers of the outputs that have gradients.
    """

    outputs: list[int]

    @property
    def name(self) -> str:
        """Name of the call, for messages."""

    @property
    def run(self) -> Callable[..., Sequence[Any]]:
        """Computes the gradients of the inputs from those of the outputs."""

    @property
    def quick(self) -> Callable[..., Sequence[Any]] | None:
        """As `run`, where they are not recorded and one output has one gradient; None: there is no shorter way."""


class Node:
    """One recorded call.

    Attributes:
        rule: How its gradients are computed.
        next: Where the gradients of its inputs go, in order of rule.wrt.
        saved: What the gradient ops read; None once it was freed.
        shapes: Shapes of its outputs, when it has several.
        versions: Versions that saved inputs had when they were saved, for those whose memory is shared or was written.
        lent: Outputs whose memory others may write to, or that were overwritten: the memory, and the version that the
            output is.
        hooks: Hooks of the gradients, by output.
    """

    # Every recorded call creates a node, so only what every node has gets a slot. The rest goes into __dict__, which
    # Python creates on the first assignment; the defaults below are on the class.
    __slots__ = ("__dict__", "next", "rule", "saved")
    rule: Rule
    next: tuple[Any, ...]
    saved: Any
    hooks: dict[int, dict[int, Any]] | None = None
    shapes: tuple[Any, ...] = ()
    versions: dict[int, int] = {}
    lent: dict[int, tuple[Memory, int]] = {}

    @property
    def name(self) -> str:
        """What was called, for messages."""
        return self.rule.name

    def overwriter(self, j: int) -> str | None:
        """What changed output j in place since it was computed; None where nothing did."""
        memory, version = self.lent.get(j, (None, 0))
        return None if memory is None or memory.version == version else memory.writer

    def __repr__(self) -> str:
        return f"<gradient of {self.name}>"


class Edge:
    """One of several outputs of a recorded call."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node, self.index = node, index

    def __repr__(self) -> str:
        return f"<output {self.index} of {self.node!r}>"


class Leaf:
    """A tensor in which gradients accumulate: one that is not the result of a recorded call.

    Attributes:
        tensor: A reference to it.
        hooks: Hooks of its gradient, by 0.
        ready: Called with the tensor when a backward pass has put its gradient there; see `oprack.autograd.followers`.
    """

    __slots__ = ("__weakref__", "hooks", "ready", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        # Weak, since the graph may outlive the tensor: when the tensor is gone, nobody can read its gradient.
        self.tensor = weakref.ref(tensor)
        self.hooks: dict[int, dict[int, Any]] | None = None
        self.ready: Any = None

    def __repr__(self) -> str:
        return "<a leaf>"


def lend(edge: Any, memory: Memory) -> None:
    """Note that an output of a recorded call is on memory that other tensors write to, or that is written to.

    Args:
        edge: The output.
        memory: Its memory.
    """
    node, index = split_edge(edge)
    j = node.rule.outputs[index]
    if j not in node.lent:
        # A new dict rather than an update: the empty default belongs to the class.
        node.lent = node.lent | {j: (memory, memory.version)}


def lend_without_gradient(node: Node, j: int, output: Tensor) -> None:
    """Note that the gradients of a call read an output that has none itself, such as the indices of topk.

    Such an output knows no node, so the node has to know its memory from the beginning.

    Args:
        node: The call.
        j: Number of the output.
        output: It.
    """
    memory = output._memory
    if memory is None:
        memory = output._memory = Memory()
        output._meta = output._meta.with_tracking
    node.lent = node.lent | {j: (memory, memory.version)}


def split_edge(edge: Any) -> tuple[Any, int]:
    """Split an edge into (node or leaf, number of the output)."""
    return (edge.node, edge.index) if type(edge) is Edge else (edge, 0)
