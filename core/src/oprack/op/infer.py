"""Contexts of shape, type and kernel-type rules, which run on VarDescs when a program is built, on values later."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError, InvalidArgumentError, InvalidLoDError, PreconditionNotMetError
from oprack.op.proto import OpProto
from oprack.python.records import dataclass
from oprack.types import VarType, dtype_name

if TYPE_CHECKING:
    from oprack.op.info import OpInfo
    from oprack.tensor import Place

Dims = tuple[int, ...]


def normal_axis(op_type: str, axis: int, rank: int, name: str = "axis") -> int:
    """Normalize a negative axis.

    Args:
        op_type: The op, for the error.
        axis: The axis; a negative one counts from the end.
        rank: Number of dims.
        name: What the op calls the axis.

    Returns:
        The axis counted from the front, 0 or more.

    Raises:
        InvalidArgumentError: It lies outside [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"op {op_type}: {name} is {axis} but the tensor has rank {rank}; expected {-rank} <= {name} < {rank}"
        )
    return axis + rank if axis < 0 else axis


class InferContext(ABC):
    """What shape and type rules share: the op's slots and attributes."""

    op_type: str
    attrs: Mapping[str, Any]
    proto: OpProto

    def require_declared(self, slot: str, declared: Mapping[str, Any], what: str) -> None:
        """Raise DefinitionError when a rule asks for a slot that its op does not have."""
        if slot not in declared:
            raise DefinitionError(
                f"op {self.op_type}: its rule names {what} {slot!r}, which the op does not declare; expected one of "
                f"{', '.join(declared) or 'none'}"
            )

    def attr(self, name: str) -> Any:
        """Value of an attribute; its default when the op does not set it."""
        return self.attrs[name]

    @abstractmethod
    def input_names(self, slot: str) -> Sequence[str]:
        """Variables bound to an input slot; empty when it is absent."""

    @abstractmethod
    def output_names(self, slot: str) -> Sequence[str]:
        """Variables bound to an output slot; empty when it is absent."""

    def has_input(self, slot: str) -> bool:
        return len(self.input_names(slot)) > 0

    def has_output(self, slot: str) -> bool:
        return len(self.output_names(slot)) > 0

    def input_count(self, slot: str) -> int:
        return len(self.input_names(slot))

    def output_count(self, slot: str) -> int:
        return len(self.output_names(slot))

    def require(self, condition: bool, message: str) -> None:
        """Raise InvalidArgumentError "op <type>: <message>" unless condition holds.

        Raises:
            DefinitionError: The message is empty, so that it could not say what is wrong.
        """
        if not (isinstance(message, str) and message.strip()):
            raise DefinitionError(
                f"op {self.op_type}: its rule calls ctx.require({condition!r}, {message!r}); expected a message that "
                "says what was passed and what is expected"
            )
        if not condition:
            raise InvalidArgumentError(f"op {self.op_type}: {message}")

    @abstractmethod
    def kind(self, slot: str, i: int = 0) -> VarType:
        """VarType.LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY ... of input i of a slot."""


class InferShapeContext(InferContext):
    """Sets dims and LoD of outputs from those of inputs. A dim of -1 is unknown until the program runs."""

    is_runtime: bool = False
    lod_is_known: bool = True
    """Whether LoD levels are final; the VarDescs of a loaded program may declare too few."""
    guesses: bool = True
    """Whether a rule may assume what is likely but decided only at run time: that no tensor overrides an attribute,
    that a dim of unknown size is not 1. Otherwise it sets -1, or no dims where even the rank is uncertain."""

    def is_initialized(self, slot: str, i: int = 0) -> bool:
        """Whether input i of a slot holds a value; at build time, whether there is one."""
        return i < self.input_count(slot)

    @abstractmethod
    def dim(self, slot: str, i: int = 0) -> Dims:
        """Shape of input i of a slot (of SelectedRows: of the dense matrix)."""

    def dims(self, slot: str) -> list[Dims]:
        """Shapes of all inputs of a slot."""
        return [self.dim(slot, i) for i in range(self.input_count(slot))]

    @abstractmethod
    def set_dim(self, slot: str, dims: Sequence[int], i: int = 0) -> None:
        """Set the shape of output i of a slot; ignored when the slot is absent."""

    def set_dims(self, slot: str, dims: Sequence[Sequence[int]]) -> None:
        """Set the shapes of all outputs of a slot."""
        for i, d in enumerate(dims):
            self.set_dim(slot, d, i)

    @abstractmethod
    def lod_level(self, slot: str, i: int = 0) -> int:
        """Number of LoD levels of input i of a slot."""

    def require_lod(self, slot: str, level: int = 1, i: int = 0) -> int:
        """Number of LoD levels of input i of a slot, which must be at least `level`.

        When a program is built, the VarDesc's level counts; when it runs, the tensor's. A loaded program may declare no
        level for a variable that receives LoD at run time, so it is checked only when it runs.

        Args:
            slot: The input slot.
            level: The least number of levels.
            i: Index of the input in its slot.

        Returns:
            The number of levels.

        Raises:
            InvalidLoDError: There are fewer.
        """
        actual = self.lod_level(slot, i)
        if actual < level and self.lod_is_known:
            names = self.input_names(slot)
            give = "feed it as LoDTensor(array, lod=[[0, ...]]), or eagerly make it by to_tensor(array, lod=[[0, ...]])"
            advice = give if self.is_runtime else f"declare it with lod_level={level}"
            raise InvalidLoDError(
                f"op {self.op_type}: input {slot} (variable {names[i]!r}) has {actual or 'no'} LoD, but its rows have "
                f"to form sequences, by {level} LoD level{'s' if level > 1 else ''} or more; {advice}, or give it LoD "
                "by lod_reset"
            )
        return actual

    @abstractmethod
    def share_lod(self, source: str, target: str, i: int = 0, j: int = 0) -> None:
        """Output j of slot `target` gets the LoD of input i of slot `source`."""

    @abstractmethod
    def set_lod_level(self, slot: str, level: int, i: int = 0) -> None:
        """Build time: output i of a slot has `level` LoD levels; the kernel decides the offsets. Run time: nothing."""

    @abstractmethod
    def lod(self, slot: str, i: int = 0) -> list[list[int]]:
        """Offsets of input i of a slot at run time; [] at build time."""

    @abstractmethod
    def value(self, slot: str, i: int = 0) -> Any:
        """Run time: input i of a slot as a NumPy array (meant for small ones, such as a shape). Build time: None."""

    def scalar(self, slot: str, i: int = 0) -> Any:
        """The only element of input i of a slot, as a NumPy scalar; None at build time.

        Raises:
            InvalidArgumentError: The input does not have exactly one element.
        """
        dims = self.dim(slot, i)
        may_be_scalar = min(dims, default=0) < 0 or math.prod(dims) == 1
        name = f"{slot}[{i}]" if self.input_count(slot) > 1 else slot
        self.require(may_be_scalar, f"{name} has shape {list(dims)}; expected a tensor of one element")
        value = self.value(slot, i)
        return None if value is None else value.reshape(-1)[0]

    def same_dims(self, slot: str, other: str) -> None:
        """Require equal shapes, dims of -1 matching any."""
        a, b = self.dim(slot), self.dim(other)
        same = len(a) == len(b) and all(x == y or x < 0 or y < 0 for x, y in zip(a, b, strict=True))
        self.require(same, f"{slot} has shape {list(a)} and {other} {list(b)}; expected equal shapes")

    def same_size(self, slot: str, other: str) -> None:
        """Require that two inputs have the same number of elements, whatever their shapes."""
        a, b = self.dim(slot), self.dim(other)
        known = min((*a, *b), default=0) >= 0
        self.require(
            not known or math.prod(a) == math.prod(b),
            f"{slot} has shape {list(a)} and {other} {list(b)}; expected the same number of elements",
        )

    def axis(self, slot: str, name: str = "axis") -> int:
        """The attribute `name`, an axis of input `slot`, counted from the front. Raises InvalidArgumentError."""
        return self._axis(self.attr(name), slot, name)

    def axes(self, slot: str, name: str = "axis") -> list[int]:
        """The attribute `name`, a list of distinct axes of input `slot`. Raises InvalidArgumentError."""
        axes = [self._axis(a, slot, name) for a in self.attr(name)]
        distinct = len(set(axes)) == len(axes)
        self.require(distinct, f"{name} is {list(self.attr(name))}; expected each axis of {slot} once at most")
        return axes

    def _axis(self, axis: int, slot: str, name: str) -> int:
        rank = len(self.dim(slot))
        if rank == 0 and not self.is_runtime:
            return max(axis, 0)  # at build time the rank may just not be known
        return normal_axis(self.op_type, axis, max(rank, 1), name)  # a scalar has one axis, as in NumPy's sort(axis=-1)

    def require_dims(self, slot: str, expected: Sequence[int], i: int = 0, why: str = "") -> None:
        """Require a shape of input i of a slot, dims of -1 matching any; an absent input passes.

        Args:
            slot: The input slot.
            expected: The dims that it must have.
            i: Index of the input in its slot.
            why: What the expected dims follow from, for the message.
        """
        if i >= self.input_count(slot):
            return
        got = self.dim(slot, i)
        if len(got) != len(expected) or any(a != b and min(a, b) >= 0 for a, b in zip(got, expected, strict=True)):
            name = f"{slot}[{i}]" if self.input_count(slot) > 1 else slot
            self.require(False, f"{name} has shape {list(got)}; expected {list(expected)}{why and ', '}{why}")

    def require_rank(self, slot: str, *ranks: int) -> Dims:
        """Shape of a slot whose rank must be one of `ranks`."""
        dims = self.dim(slot)
        if len(dims) not in ranks:  # asked for each new shape, so no message is made before it is needed
            expected = " or ".join(map(str, ranks))
            self.require(False, f"{slot} has shape {list(dims)} of rank {len(dims)}; expected rank {expected}")
        return dims

    def require_sizes(self, what: str, sizes: Sequence[int]) -> None:
        """Require that no size from an attribute or a tensor is negative; at build time, -1 stands for unknown."""
        least = 0 if self.is_runtime else -1
        self.require(all(s >= least for s in sizes), f"{what} is {list(sizes)}; expected sizes of at least 0")


class IdentityContext(InferShapeContext):
    """The context of `identity(ctx)`: that of shape rules, with the dtypes of the inputs."""

    @abstractmethod
    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot; "" when its VarDesc does not say."""


class InferVarTypeContext(InferContext):
    """Sets container and dtype of outputs from those of inputs, at build time."""

    @abstractmethod
    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot, for example "float32"."""

    @abstractmethod
    def set_dtype(self, slot: str, dtype: object, i: int | None = None) -> None:
        """Set the dtype of output i of a slot, or of all of them; a name or a wire number."""

    @abstractmethod
    def set_kind(self, slot: str, kind: VarType, i: int | None = None) -> None:
        """Set the container of output i of a slot, or of all of them."""


def infer_like_first_input(ctx: InferVarTypeContext, proto: Any) -> None:
    """Default of infer_var_type: every output has the container and dtype of the first input that is present."""
    for slot in proto.inputs:
        if ctx.has_input(slot):
            dtype, kind = ctx.dtype(slot), ctx.kind(slot)
            for out in proto.outputs:
                if ctx.has_output(out):
                    ctx.set_kind(out, kind)
                    ctx.set_dtype(out, dtype)
            return


# The type of the kernel -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OpKernelType:
    """The place, dtype and library of a kernel.

    Attributes:
        place: Kind of place, such as "cpu".
        dtype: Name of the dtype that it computes in.
        library: The library whose functions it calls; "plain" for none.
    """

    place: str
    dtype: str
    library: str = "plain"

    def __str__(self) -> str:
        return f"{self.place}, {self.dtype}" + ("" if self.library == "plain" else f", {self.library}")


class KernelTypeContext:
    """The argument of `expected_kernel_type(ctx)`: what a rule may ask about an op that is to run.

    Args:
        info: The op.
        attrs: All its attributes.
        dtypes: For each present input slot the dtype of each of its inputs, None for one that holds no tensor.
        place: The place of the run.
        names: Names of the variables by input slot, for errors.
        declared: Says which dtype the program declares for the first output of a slot.

    Attributes:
        op_type: The op.
        attrs: All attributes of the op.
        place: The place of the run.
    """

    def __init__(
        self,
        info: OpInfo,
        attrs: Mapping[str, Any],
        dtypes: Mapping[str, Sequence[str | None]],
        place: Place,
        names: Mapping[str, Sequence[str]] | None = None,
        declared: Callable[[str], str | None] = lambda slot: None,
    ) -> None:
        self.op_type, self.attrs, self.place = info.type, attrs, place
        self._info, self._dtypes, self._names, self._declared = info, dtypes, names or {}, declared

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot."""
        return len(self._dtypes.get(slot, ()))

    def has_input(self, slot: str) -> bool:
        """Whether an input slot is present."""
        return bool(self._dtypes.get(slot))

    def is_initialized(self, slot: str, i: int = 0) -> bool:
        """Whether input i of a slot holds a value with a dtype."""
        dtypes = self._dtypes.get(slot, ())
        return i < len(dtypes) and dtypes[i] is not None

    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot.

        Raises:
            InvalidArgumentError: The input is absent or holds no tensor.
        """
        dtypes = self._dtypes.get(slot, ())
        dtype = dtypes[i] if i < len(dtypes) else None
        if dtype is None:
            raise InvalidArgumentError(f"op {self.op_type}: input {slot}[{i}] holds no tensor, so it has no dtype")
        return dtype

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        return self._declared(slot)

    def kernel_type(self, *, dtype: str, place: str | None = None, library: str = "plain") -> OpKernelType:
        """An OpKernelType at the place of the run, unless `place` is given; `library` requests a library."""
        return OpKernelType(place or self.place.kind, dtype, library)

    def common_dtype(self) -> OpKernelType:
        """The default rule: the dtype that all present inputs share.

        Raises:
            InvalidArgumentError: The message names the inputs that differ, or says that none is present.
            PreconditionNotMetError: The inputs hold no values.
        """
        known = [(f"{s}[{i}]", d) for s, ds in self._dtypes.items() for i, d in enumerate(ds) if d is not None]
        if not known:
            raise self._without_dtype()
        first, dtype = known[0]
        for name, other in known:
            if other != dtype:
                raise InvalidArgumentError(
                    f"op {self.op_type} (pack {self._info.pack}): input {first} is {dtype} but {name} is {other}; all "
                    "inputs of this op share one dtype, so cast one of them"
                )
        return self.kernel_type(dtype=dtype)

    def _without_dtype(self) -> InvalidArgumentError | PreconditionNotMetError:
        if self._dtypes:
            names = [repr(n) for slot in self._dtypes for n in self._names.get(slot, ())]
            return PreconditionNotMetError(
                f"op {self.op_type}: variable {', '.join(names)} holds no value; feed it, load it, or run the op that "
                "writes it first"
            )
        return InvalidArgumentError(
            f"op {self.op_type} (pack {self._info.pack}): it has no input, so the dtype of the kernel can't be told; "
            "its definition needs expected_kernel_type, for example dtype_of_attr('dtype')"
        )


def dtype_of(*slots: str) -> Callable[[Any], Any]:
    """`expected_kernel_type = dtype_of("W")`: the kernel's dtype is that of the first of these slots that is present.

    For ops whose inputs differ in dtype on purpose (ids and a table), or whose first input may be absent.

    Args:
        slots: Input slots.

    Returns:
        The rule.
    """

    def expected_kernel_type(ctx: Any) -> Any:
        for slot in slots:
            for i in range(ctx.input_count(slot)):
                if ctx.is_initialized(slot, i):
                    return ctx.kernel_type(dtype=ctx.dtype(slot, i))
        raise InvalidArgumentError(
            f"op {ctx.op_type}: none of its inputs {', '.join(slots)} holds a tensor, so the dtype of the kernel "
            "can't be told; feed it or run the op that writes it"
        )

    return expected_kernel_type


def dtype_of_attr(name: str, *slots: str) -> Callable[[Any], Any]:
    """`expected_kernel_type = dtype_of_attr("dtype")`: the dtype is an attribute (a wire number).

    A negative number means "as the input": then the first present slot of `slots` decides.

    Args:
        name: The attribute.
        slots: Input slots.

    Returns:
        The rule.
    """
    by_slot = dtype_of(*slots) if slots else None

    def expected_kernel_type(ctx: Any) -> Any:
        value = ctx.attrs[name]
        if isinstance(value, int) and value < 0 and by_slot is not None:
            return by_slot(ctx)
        return ctx.kernel_type(dtype=dtype_name(value))

    return expected_kernel_type
