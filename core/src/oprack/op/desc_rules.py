"""Rules of ops applied to descs: shapes, types and gradient ops with names; and who raised when one fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from oprack.errors import InvalidArgumentError, NotFoundError, OpError, OprackError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.facets import FACETS
from oprack.op.grad import ForwardOp, GradOp, SlotRef
from oprack.op.infer import Dims, IdentityContext, InferContext, InferShapeContext, InferVarTypeContext
from oprack.op.info import OpInfo
from oprack.python.interruption import let_interruptions_pass
from oprack.types import EMPTY_VAR, GRAD_SUFFIX, VarType, dtype_enum

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc, VarDesc

_CORE = "oprack"


class RaisingKernel(Protocol):
    """What is asked of a KernelSpec."""

    @property
    def function(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...


def raised_by(error: BaseException, info: OpInfo, kernels: Iterable[RaisingKernel] = ()) -> tuple[str, str]:
    """Whose code an exception came out of.

    Args:
        error: The exception, with its traceback.
        info: The op's facets.
        kernels: The op's kernels.

    Returns:
        (text, distribution): " in kernel my_pack.kernels.relu.relu of my-pack (my_pack/kernels/relu.py:12)", and
        "my-pack"; both "" when it is code of the core alone, or of nobody who is known.
    """
    rows = [*_kernel_codes(kernels), *_facet_codes(info)]
    known = {code: (what, owner) for code, what, owner, _ in rows}
    packages = {top: owner for _, _, owner, top in rows if top != _CORE}
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append((entry.tb_frame.f_code, _top(entry.tb_frame.f_globals), entry.tb_lineno))
        entry = entry.tb_next
    entered = next((i for i, (code, _, _) in enumerate(frames) if code in known), None)
    if entered is None:  # what a kernel's specialize returned is known by its package alone
        entered = next((i for i, (_, top, _) in enumerate(frames) if top in packages), None)
        if entered is None:
            return "", ""
        what, owner = "", packages[frames[entered][1]]
    else:
        what, owner = known[frames[entered][0]]
        what += " of "
    package = frames[entered][1]
    code, _, line = [frame for frame in frames[entered:] if frame[1] == package][-1]
    return f" in {what}{owner} ({code.co_filename}:{line})", owner


def told_of_stranger(error: OprackError, info: OpInfo, kernels: Iterable[RaisingKernel] = ()) -> str:
    """The text of an error of ours, with whose code raised it where that is another pack's than the op's.

    Args:
        error: The error.
        info: The op's facets.
        kernels: The op's kernels.

    Returns:
        The text, with a line more unless it names that pack already.
    """
    text = str(error)
    where, owner = raised_by(error, info, kernels)
    return text if owner in ("", info.pack) or owner in text else f"{text}\nraised{where}"


def _top(namespace: dict[str, Any]) -> str:
    return str(namespace.get("__name__", "")).partition(".")[0]


def _kernel_codes(kernels: Iterable[RaisingKernel]) -> Iterator[tuple[CodeType, str, str, str]]:
    """(code, what it is, who brought it, its top package) of each kernel."""
    for spec in kernels:
        if found := _code(spec.function):
            yield found[0], f"kernel {spec.name}", spec.owner, found[1]


def _facet_codes(info: OpInfo) -> Iterator[tuple[CodeType, str, str, str]]:
    """The same of each facet that is code."""
    for kind in FACETS:
        owner, value = info.owners.get(kind.name, ""), getattr(info, kind.name, None)
        if value is None or not owner:
            continue
        if kind.name == "creator":
            value = getattr(value, "run_impl", None)
        if found := _code(getattr(value, "function", value)):
            yield found[0], kind.member or kind.name, owner, found[1]


def _code(value: Any) -> tuple[CodeType, str] | None:
    """The code of a function, a method or an object that is called, and its top package."""
    for function in (value, vars(type(value)).get("__call__")):
        unwrapped = inspect.unwrap(function) if callable(function) else None
        unwrapped = getattr(unwrapped, "__func__", unwrapped)
        code = getattr(unwrapped, "__code__", None)
        if isinstance(code, CodeType):
            return code, _top(getattr(unwrapped, "__globals__", {}))
    return None


class _DescContext(InferContext):
    def __init__(
        self, op: OpDesc, block: BlockDesc, info: OpInfo, checked_attrs: Mapping[str, Any] | None = None
    ) -> None:
        """checked_attrs: the op's attributes where they were checked before."""
        self.op_type, self.proto = op.type, info.proto
        self._op, self._block = op, block
        self.attrs = checked_attrs if checked_attrs is not None else self._checked(op, info)

    @staticmethod
    def _checked(op: OpDesc, info: OpInfo) -> Mapping[str, Any]:
        given = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
        return info.checker.check(given, op.var_attrs()) if info.checker else given

    def input_names(self, slot: str) -> Sequence[str]:
        names = self._op.inputs.get(slot)
        if names is None:
            self.require_declared(slot, self.proto.inputs, "input")
            return ()
        return [n for n in names if n != EMPTY_VAR]

    def output_names(self, slot: str) -> Sequence[str]:
        names = self._op.outputs.get(slot)
        if names is None:
            self.require_declared(slot, self.proto.outputs, "output")
            return ()
        return names

    def _in(self, slot: str, i: int) -> VarDesc:
        names = self.input_names(slot)
        if i >= len(names):
            raise InvalidArgumentError(
                f"op {self.op_type}: input {slot} has {len(names)} variables, but its rule reads number {i}; give it "
                "one"
            )
        return self._var(names[i], f"input {slot}[{i}]")

    def _out(self, slot: str, i: int) -> VarDesc | None:
        names = self.output_names(slot)
        if i >= len(names) or names[i] == EMPTY_VAR:
            return None
        return self._var(names[i], f"output {slot}[{i}]")

    def _var(self, name: str, role: str) -> VarDesc:
        var = self._block.find_var_recursive(name)
        if var is None:
            raise NotFoundError(
                f"op {self.op_type}: {role} is variable {name!r}, which block {self._block.idx} and its parents do not "
                "declare; create it with block.create_var(name, ...)"
            )
        return var

    def kind(self, slot: str, i: int = 0) -> VarType:
        return self._in(slot, i).type


class DescInferShapeContext(_DescContext, InferShapeContext):
    """Dims of VarDescs, -1 where each batch decides."""

    lod_is_known = False
    values: Mapping[str, Any] = {}

    def dim(self, slot: str, i: int = 0) -> Dims:
        return tuple(self._in(slot, i).shape or ())

    def set_dim(self, slot: str, dims: Sequence[int], i: int = 0) -> None:
        var = self._out(slot, i)
        if var is not None:
            var.shape = tuple(int(d) for d in dims)

    def lod_level(self, slot: str, i: int = 0) -> int:
        return self._in(slot, i).lod_level

    def share_lod(self, source: str, target: str, i: int = 0, j: int = 0) -> None:
        var, shared = self._out(target, j), self.has_input(source)
        if var is not None and shared:
            var.lod_level = self._in(source, i).lod_level

    def set_lod_level(self, slot: str, level: int, i: int = 0) -> None:
        var = self._out(slot, i)
        if var is not None:
            var.lod_level = level

    def lod(self, slot: str, i: int = 0) -> list[list[int]]:
        return []

    def value(self, slot: str, i: int = 0) -> Any:
        return self.values.get(self.input_names(slot)[i]) if self.values else None


class DescInferVarTypeContext(_DescContext, InferVarTypeContext):
    """Containers and dtypes of VarDescs."""

    def dtype(self, slot: str, i: int = 0) -> str:
        var = self._in(slot, i)
        name = var.dtype_name()
        if name is None:
            raise InvalidArgumentError(f"op {self.op_type}: input {slot}[{i}] (variable {var.name!r}) has no dtype")
        return name

    def set_dtype(self, slot: str, dtype: object, i: int | None = None) -> None:
        for k in range(self.output_count(slot)) if i is None else (i,):
            var = self._out(slot, k)
            if var is not None:
                var.dtype = dtype_enum(dtype)

    def set_kind(self, slot: str, kind: VarType, i: int | None = None) -> None:
        for k in range(self.output_count(slot)) if i is None else (i,):
            var = self._out(slot, k)
            if var is not None:
                var.type = kind


class DescIdentityContext(DescInferShapeContext, IdentityContext):
    """What a rule `identity(ctx)` may ask: attributes, slots, and dims, LoD levels and dtypes of the inputs."""

    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot; "" when its VarDesc does not say."""
        return self._in(slot, i).dtype_name() or ""


def infer_op(
    op: OpDesc,
    block: BlockDesc,
    info: OpInfo,
    *,
    lod_is_known: bool = False,
    guesses: bool = True,
    values: Mapping[str, Any] | None = None,
    shapes: type[DescInferShapeContext] = DescInferShapeContext,
) -> None:
    """Set container, dtype, dims and LoD level of an op's outputs in the block.

    Raises what the op's rules raise, AttributeValueError, NotFoundError for a variable that is not declared, and
    OpError where a rule fails, as for inputs that it was not written for.

    Args:
        lod_is_known: The program is being written, so that an op may refuse an input that is declared without LoD.
        guesses: Whether rules take attributes as hints of what tensors hold that override them when the op runs.
        values: Arrays of inputs that are known before the program runs, by name, such as a shape.
        shapes: The context of the shape rule, where dims are something else than integers.
    """
    for slot, names in op.inputs.items():
        if (known := info.proto.inputs.get(slot)) is not None and (few := known.too_few(len(names))):
            raise InvalidArgumentError(f"op {op.type}: input {few}")
    try:
        types = DescInferVarTypeContext(op, block, info)
        info.run_infer_var_type(types)
        if info.infer_shape is not None:
            context = shapes(op, block, info, types.attrs)
            context.lod_is_known, context.guesses, context.values = lod_is_known, guesses, values or {}
            info.infer_shape(context)
    except OprackError as error:
        error.args = (told_of_stranger(error, info), *error.args[1:])
        raise
    except Exception as error:
        let_interruptions_pass()
        inputs = ", ".join(
            f"{slot} {[list(var.shape or ()) for n in names if (var := block.find_var_recursive(n)) is not None]}"
            for slot, names in op.inputs.items()
        )
        where, _ = raised_by(error, info)
        raise OpError(
            f"op {op.type} (pack {info.pack}): its rules fail for inputs of shapes {inputs}: {type(error).__name__}: "
            f"{error}" + (f"\nraised{where}" if where else "")
        ) from error


def grad_name(name: str) -> str:
    """Name of a variable's gradient."""
    return name + GRAD_SUFFIX


def make_grad_ops(
    info: OpInfo, op: OpDesc, accumulated: Collection[str] = (), held: Collection[str] = ()
) -> list[GradOp]:
    """The symbolic gradient ops of a forward op.

    Args:
        info: The op's definition.
        op: The forward op.
        accumulated: See ForwardOp; by default no other op contributes to the gradients.
        held: See ForwardOp; by default no other op reads the variables later.

    Raises:
        NotDifferentiableError: When the op has no gradient maker.
        OpError: When the maker fails.
    """
    maker = info.require_grad_op_maker()
    attrs = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
    if info.checker is not None:
        attrs = info.checker.check(attrs, op.var_attrs())
    inputs = {s: len(names) for s, names in op.inputs.items() if names}
    outputs = {s: len(names) for s, names in op.outputs.items() if any(n != EMPTY_VAR for n in names)}
    try:
        grad_ops = maker(ForwardOp(info.proto, attrs, inputs, outputs, accumulated, held))
    except OprackError as error:
        error.args = (told_of_stranger(error, info), *error.args[1:])
        raise
    except Exception as error:
        let_interruptions_pass()
        where, _ = raised_by(error, info)
        raise OpError(
            f"op {op.type} (pack {info.pack}): its make_grad failed: {type(error).__name__}: {error}"
            + (f"\nraised{where}" if where else "")
        ) from error
    return [grad_ops] if isinstance(grad_ops, GradOp) else list(grad_ops)


def read_outputs(grads: Iterable[GradOp]) -> set[str]:
    """Output slots of the forward op of which a gradient flows back.

    Args:
        grads: All gradient ops of the forward op.
    """
    read: set[str] = set()
    for grad in grads:
        refs = (*grad.inputs.values(), *grad.outputs.values())
        read.update(ref.slot for ref in refs if ref.role == "output_grad")
        read.update(grad.same.values())
        if grad.block is not None:
            read.add(grad.block.out_slot)
    return read


def grad_op_desc(
    grad: GradOp,
    info: OpInfo,
    op: OpDesc,
    no_grad: Collection[str] = (),
    name_of: Callable[[str], str] = grad_name,
    temporary: Callable[[str], str] = str,
) -> OpDesc:
    """A gradient op of `op` as an OpDesc; gradients of variables in `no_grad` are "@EMPTY@" among its outputs.

    Args:
        name_of: Returns the name of a variable's gradient.
        temporary: Returns the name of a temporary variable, from its label.
    """
    from oprack.desc import OpDesc

    def names(ref: SlotRef, reads: bool) -> Sequence[str]:
        if ref.role == "temporary":
            return [temporary(ref.slot)]
        side = op.inputs if ref.role.startswith("input") else op.outputs
        variables = side.get(ref.slot, [])
        if ref.index is not None:
            variables = variables[ref.index : ref.index + 1]
        if ref.role == "input_grad":
            return [EMPTY_VAR if (n in no_grad and not reads) or n == EMPTY_VAR else name_of(n) for n in variables]
        if ref.role == "output_grad":
            return [name_of(n) for n in variables]
        return variables

    inputs = {s: n for s, ref in grad.inputs.items() if (n := names(ref, True))}
    outputs = {s: n for s, ref in grad.outputs.items() if (n := names(ref, False))}
    types = {k: t for k, t in op.attr_types.items() if k in grad.attrs}
    types |= {k: a.type for k, a in info.proto.attrs.items() if k in grad.attrs and k not in types}
    return OpDesc(grad.type, inputs, outputs, grad.attrs, types)


def grad_op_descs(info: OpInfo, op: OpDesc, no_grad: Collection[str] = ()) -> list[OpDesc]:
    """The gradient ops of `op` as OpDescs, provided that no other op reads its inputs.

    The arguments are those of `grad_op_desc`. An op whose outputs would all be "@EMPTY@" is left out.
    """

    def temporary(label: str) -> str:
        return f"{op.output_arg_names()[0]}{GRAD_SUFFIX}@{label}"

    descs = [grad_op_desc(grad, info, op, no_grad, temporary=temporary) for grad in make_grad_ops(info, op)]
    return [d for d in descs if any(n != EMPTY_VAR for n in d.output_arg_names())]
