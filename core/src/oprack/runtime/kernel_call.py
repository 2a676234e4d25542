"""A call of a kernel on the reference path: its arguments and context, and its results as values of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError, KernelResultError, OprackError, PreconditionNotMetError
from oprack.kernel import Candidate, KernelContext, KernelRules
from oprack.kernel.invoke import ObjectArguments, by_output_slot, call, invoke
from oprack.runtime import checks
from oprack.runtime.infer import RuntimeInferVarTypeContext, dtype_of_value
from oprack.tensor import LoDTensor, LoDTensorArray, ShapeOnly, SparseValue
from oprack.types import ALL_DTYPES, COMPLEX, DTYPE_NAMES, EMPTY_VAR, FLOATS, HALF_FLOATS, dtype_name

if TYPE_CHECKING:
    from oprack.device import DeviceContext
    from oprack.packs.manager import PackManager
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext
    from oprack.tensor.lod_tensor import LoD

_DTYPES = frozenset(np.dtype(name) for name in ALL_DTYPES if name != "bfloat16")
_FLOATING = FLOATS | HALF_FLOATS | COMPLEX
Shares = Sequence[tuple[tuple[str, int], tuple[str, int]]]
Values = Mapping[str, Sequence[Any]]


def compute(
    op: OperatorWithKernel,
    best: Candidate,
    values: Values,
    attrs: Mapping[str, Any],
    run: RunContext,
    watched: bool,
    whole: bool,
) -> tuple[Candidate, Any]:
    """Call the first kernel of a chain that does not decline.

    Args:
        op: the operator; it notes who declined and why.
        best: the chain.
        values: inputs by slot, at the kernel's place.
        attrs: all attributes.
        run: the run.
        watched: whether to look that a kernel that declines has written nothing.
        whole: as checks.fingerprint takes it.

    Returns:
        The kernel that computed, and what it returned.

    Raises:
        KernelNotFoundError: all declined.
        InputOverwrittenError: one wrote before it declined.
    """

    def one(candidate: Candidate) -> Any:
        # A kernel that writes and then declines would leave the next one a changed input.
        watch = watched and candidate.spec.may_decline
        before = checks.fingerprint(op, values, whole=whole, written=True) if watch else None
        result = call(candidate, _OperatorArguments(op, candidate, values, attrs, run))
        if before is not None and result is NotImplemented:
            checks.check_declined(op, candidate, values, before, whole=whole)
        return result

    chosen, result, op.declined = invoke(op.type, best, _first_numel(best, values), one)
    return chosen, result


def _first_numel(best: Candidate, values: Values) -> int:
    """Elements of a kernel's first input; 0 when it has none."""
    first = next(iter(values.get(best.signature.inputs[0][0], ())), None) if best.signature.inputs else None
    return first.array.size if isinstance(first, LoDTensor) else 0


class _OperatorArguments(ObjectArguments):
    """The inputs and attributes of an operator in one run."""

    def __init__(
        self, op: OperatorWithKernel, candidate: Candidate, values: Values, attrs: Mapping[str, Any], run: RunContext
    ) -> None:
        self._op, self._candidate, self._values, self._attrs, self._run = op, candidate, values, attrs, run

    def values(self, slot: str) -> Sequence[Any]:
        return self._values.get(slot, ())

    def value(self, slot: str, i: int, value: Any, container: str) -> Any:
        op = self._op
        proto = op.info.proto.inputs[slot]
        if value is None and not proto.dispensable and not proto.duplicable:
            raise PreconditionNotMetError(
                f"op {op.type}: input {slot} (variable {op.inputs[slot][0]!r}) holds no value; feed it, load "
                "it, or run the op that writes it first"
            )
        if not isinstance(value, LoDTensor):
            return value
        if slot in op.info.no_need_buffer_vars:
            # of this input the op needs no more than shape and LoD
            spec = self._candidate.spec
            who = f"op {op.type}, input {slot}: kernel {spec.name} of {spec.owner} ({spec.where})"
            array = ShapeOnly(value.array, who)
            value = LoDTensor(array, value.lod, place=value.place, check=False)
        return value if container else value.array

    def attr(self, name: str) -> Any:
        return self._attrs[name]

    def injected(self, name: str) -> Any:
        if name == "xp":
            return self._run.device.xp
        if name == "out":
            return inplace_buffer(self._op, self._values)
        lods = {s: [v.lod if isinstance(v, LoDTensor) else [] for v in vs] for s, vs in self._values.items()}
        return OperatorContext(self._op, lods, self._run, self._attrs)


def inplace_buffer(op: OperatorWithKernel, values: Values) -> Any:
    """The input's own buffer when the first output is that input and nobody else sees its memory.

    Not where the op has more outputs: it could be interrupted when one is written and the others are on their way.
    """
    x = op.first_inplace
    value = values[x][0] if x is not None and len(op.outputs) == 1 else None
    if isinstance(value, LoDTensor) and not value.shared and value.array.flags.c_contiguous:
        flags = value.array.flags
        # A view's memory may be seen through its base.
        owned = flags.owndata and flags.writeable if isinstance(value.array, np.ndarray) else True
        return value.array if owned else None
    return None


class OperatorContext(KernelContext):
    """The KernelContext of an operator in a run.

    Args:
        op: The operator.
        lods: Offsets of the inputs by slot; slots without LoD may be left out.
        run: The run.
        attrs: All attributes, where the program takes some from variables; None means the operator's.
    """

    __slots__ = ("_op", "_run")

    def __init__(
        self,
        op: OperatorWithKernel,
        lods: Mapping[str, Sequence[LoD]],
        run: RunContext,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        # What the operator and the run know is asked of them: most kernels ask for none of it.
        self._op, self._run, self._lods = op, run, lods
        self._attrs = op.attrs if attrs is None else attrs

    @property
    def op_type(self) -> str:
        return self._op.type

    @property
    def rules(self) -> KernelRules:
        return self._run.rules

    @property
    def device(self) -> DeviceContext:
        return self._run.device

    @property
    def packs(self) -> PackManager:
        manager: PackManager = self._run.program.manager
        return manager

    def wants(self, slot: str, i: int = 0) -> bool:
        return self._op.wants(slot, i)

    def is_read(self, *slots: str) -> bool:
        return any(self._op.is_read(slot) for slot in slots)

    def input_count(self, slot: str) -> int:
        return len(self._op.inputs.get(slot, ()))

    def output_count(self, slot: str) -> int:
        return len(self._op.outputs.get(slot, ()))

    def output_dtype(self, slot: str) -> str | None:
        return self._op.output_dtype(slot)

    def generator(self, seed: int = 0) -> np.random.Generator:
        return self._run.random.generator(self._op.key, seed)


# What it returned -----------------------------------------------------------------------------------------------------
def collect(
    op: OperatorWithKernel, chosen: Candidate, result: Any, shares: Shares, values: Values, run: RunContext
) -> dict[str, list[Any]]:
    """Turn what a kernel returned into values of the op's outputs.

    Args:
        op: The operator.
        chosen: The kernel that computed.
        result: What it returned.
        shares: Pairs of an input and an output that gets its LoD, as (slot, position).
        values: Inputs by slot.
        run: The run.

    Returns:
        Lists of values by output slot, with LoD and place set.

    Raises:
        KernelResultError: The result is no array, of an unknown dtype, on the host's memory, or one of too many.
    """
    by_slot = _by_slot(op, chosen, result)
    lods = {target: values[s][i].lod for (s, i), target in shares if hasattr(values[s][i], "lod")}
    outputs: dict[str, list[Any]] = {}
    for slot, made in by_slot.items():
        if slot not in op.outputs:
            continue
        many = op.info.proto.outputs[slot].duplicable
        items = made if many and isinstance(made, list | tuple) else [made]
        if len(items) != len(op.outputs[slot]) and made is not None:
            raise KernelResultError(
                f"{_kernel_of(op, chosen)} returned {len(items)} values for output {slot}; expected one for each of "
                f"its {len(op.outputs[slot])} variables (None = not computed)"
            )
        outputs[slot] = [_wrap(op, v, lods.get((slot, i), []), slot, i, chosen, run) for i, v in enumerate(items)]
    if chosen.spec.view:
        _share_memory(chosen, values, outputs)
    return outputs


def _kernel_of(op: OperatorWithKernel, chosen: Candidate) -> str:
    spec = chosen.spec
    return f"op {op.type}: kernel {spec.name} of {spec.owner} ({spec.where})"


def _by_slot(op: OperatorWithKernel, chosen: Candidate, result: Any) -> dict[str, Any]:
    try:
        return {slot: value for _, slot, value in by_output_slot(result, op.info.proto)}
    except KernelResultError as error:
        raise KernelResultError(f"{_kernel_of(op, chosen)} {error}") from None


def _wrap(op: OperatorWithKernel, value: Any, lod: Any, slot: str, i: int, chosen: Candidate, run: RunContext) -> Any:
    if value is None or isinstance(value, LoDTensorArray):
        return value
    if isinstance(value, SparseValue):
        value.place = run.place
        _check_known(op, value.elements.dtype, slot, chosen)
        return value
    if isinstance(value, LoDTensor):
        value.place = run.place
        if value.array.dtype not in _DTYPES:
            _check_known(op, value.array.dtype, slot, chosen)
        return value
    if getattr(value, "dtype", None) is None:
        if isinstance(value, list | tuple | dict | str | set):
            raise KernelResultError(
                f"{_kernel_of(op, chosen)} returned a {type(value).__name__} for output {slot}; expected an array"
            )
        value = (run.device.xp or np).asarray(value)
    elif isinstance(value, np.ndarray) and run.device.xp not in (np, None):
        raise KernelResultError(
            f"{_kernel_of(op, chosen)} returned memory of the host for output {slot}, at {run.place!r}; use xp instead "
            "of numpy"
        )
    if value.dtype not in _DTYPES:
        _check_known(op, value.dtype, slot, chosen)
    tensor = LoDTensor(value, lod, place=run.place, check=False)
    if tensor.array.dtype.kind == "c" and "@GRAD" in slot:
        tensor = _real_gradient(op, tensor, slot, i)
    return tensor


def _check_known(op: OperatorWithKernel, dtype: Any, slot: str, chosen: Candidate) -> None:
    try:
        dtype_name(dtype)
    except InvalidArgumentError:
        raise KernelResultError(
            f"{_kernel_of(op, chosen)} returned dtype {dtype} for output {slot}; expected one of "
            f"{', '.join(sorted(ALL_DTYPES))}"
        ) from None


def _real_gradient(op: OperatorWithKernel, tensor: LoDTensor, slot: str, i: int) -> LoDTensor:
    """The gradient of a real variable is real, also where it flowed through complex numbers."""
    names = op.outputs.get(slot, ())
    var = op.block.find_var_recursive(names[i]) if i < len(names) else None
    if var is not None and var.dtype is not None and "COMPLEX" not in var.dtype.name:
        return LoDTensor(tensor.array.real.copy(), tensor.lod, place=tensor.place, check=False)
    return tensor


def _share_memory(chosen: Candidate, values: Values, outputs: Values) -> None:
    """Outputs of a view kernel may be on the memory of its first parameter: nothing may be written into them."""
    viewed = values.get(chosen.signature.inputs[0][0], ())
    for tensor in (*viewed, *(v for vs in outputs.values() for v in vs)):
        if isinstance(tensor, LoDTensor):
            tensor.shared = True


# Checks ---------------------------------------------------------------------------------------------------------------
def check_results(
    op: OperatorWithKernel,
    chosen: Candidate,
    promised: Mapping[tuple[str, int], Sequence[int]],
    values: Values,
    outputs: Values,
    *,
    dtypes: bool,
) -> None:
    """Check that every output that the program asks for is there, with the shape that the shape rule promised.

    Args:
        op: The operator.
        chosen: The kernel that computed.
        promised: Shape by (output slot, position), -1 for any size.
        values: Inputs by slot.
        outputs: Outputs by slot.
        dtypes: Whether to run the op's type rule and compare dtypes as well.

    Raises:
        KernelResultError: An output is missing or has another shape or dtype. The message names the kernel, since what
            it returned is no fault of who called the op.
    """
    _require_outputs(op, chosen, outputs)
    for (slot, i), dims in promised.items():
        made = outputs.get(slot, ())
        value = made[i] if i < len(made) else None
        if isinstance(value, LoDTensor | SparseValue) and not is_promised(value.shape, dims):
            raise KernelResultError(
                f"{_kernel_of(op, chosen)} returned shape {list(value.shape)} for output {slot} (variable "
                f"{op.outputs[slot][i]!r}), but infer_shape promised {list(dims)}; the kernel and the definition of "
                f"pack {op.info.pack} disagree"
            )
    if dtypes:
        _check_dtypes(op, chosen, values, outputs)


def _require_outputs(op: OperatorWithKernel, chosen: Candidate, outputs: Values) -> None:
    """Raise KernelResultError when an output is missing that the program asks for and the op always has."""
    read = {n for names in op.inputs.values() for n in names}  # None leaves a variable as it is
    for slot, proto in op.info.proto.outputs.items():
        names = op.outputs.get(slot)
        if not names or proto.dispensable or proto.intermediate or proto.extra:
            continue
        made = outputs.get(slot, ())
        for i, name in enumerate(names):
            if name != EMPTY_VAR and name not in read and (i >= len(made) or made[i] is None):
                raise KernelResultError(
                    f"{_kernel_of(op, chosen)} returned None for output {slot} (variable {name!r}), which the op "
                    "always has; return an array, or declare the slot Output(..., dispensable=True)"
                )


def is_promised(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether a shape is what a shape rule said of it; -1 = any."""
    return len(shape) == len(dims) and all(d in (-1, s) for d, s in zip(dims, shape, strict=True))


def _check_dtypes(op: OperatorWithKernel, chosen: Candidate, values: Values, outputs: Values) -> None:
    """A dtype is right when the op's rule says so for the inputs at hand, or the program for the variable.

    Inputs of several floating dtypes are promoted as the array library does, which no rule promises.
    """
    given = {n: dtype_of_value(v) for slot, vs in values.items() for n, v in zip(op.inputs[slot], vs, strict=True)}
    if len(_FLOATING.intersection(given.values())) > 1:
        return
    context = RuntimeInferVarTypeContext(op.info.proto, op.attrs, values, op.inputs, op.outputs)
    try:
        op.info.run_infer_var_type(context)
    except OprackError:
        return  # the rule needs something that is known only when the program is built
    for (slot, i), promised in context.dtypes_set.items():
        made = outputs.get(slot, ())
        actual = dtype_of_value(made[i]) if i < len(made) else None
        if actual is None or actual == promised or op.outputs[slot][i] == EMPTY_VAR:
            continue
        if actual == given.get(op.outputs[slot][i]):
            continue  # the op writes to its own input, which keeps its dtype
        var = op.block.find_var_recursive(op.outputs[slot][i])
        declared = DTYPE_NAMES.get(var.dtype) if var is not None and var.dtype is not None else None
        if actual != declared:
            raise KernelResultError(
                f"{_kernel_of(op, chosen)} returned {actual} for output {slot} (variable {op.outputs[slot][i]!r}), but "
                f"the type rule of the op promised {promised}; cast in the kernel, or mend infer_var_type in the "
                f"definition of pack {op.info.pack}"
            )
