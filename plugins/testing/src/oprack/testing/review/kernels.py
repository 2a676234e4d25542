"""Whether cases give what they expect, and kernels run with every dtype that they declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.kernel import bind_signature
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.testing.any_kind import elements, with_elements
from oprack.testing.case_folder import case_to_write, shown
from oprack.testing.fuzz.examples.calls import OpCall
from oprack.testing.fuzz.examples.ops import one_op
from oprack.testing.fuzz.runs.paths import filled_scope
from oprack.testing.review.subject import Finding, Subject
from oprack.testing.runner import CHECKS
from oprack.types import FLOATS, INTEGERS, dtype_enum

_DTYPE_ATTRS = ("dtype", "in_dtype", "out_dtype")
_MEND = "mend the kernel, the rule or the case, whichever is wrong"


def review(subject: Subject) -> Iterator[Finding]:
    """Run all cases as the conformance tests do, then one case of each op with the dtypes that no case has."""
    if subject.case_error:
        yield Finding("kernels", subject.case_error, "mend the file of cases")
    for suite in subject.suites:
        for file in subject.each(list(suite.files()), "case files"):
            failures, stale, _ = suite.check_file(file)
            yield from (Finding("kernels", reason, _MEND) for reason in failures)
            yield from (Finding("kernels", reason, "take it out of the limitations of the suite") for reason in stale)
    for op_type in subject.each(sorted(subject.manifest.kernels), "kernels of ops of other packs"):
        if subject.manager.has_op(op_type):
            yield from _run_cases(subject, op_type)
    for op_type in subject.each(subject.ops, "kernels"):
        if subject.runs_itself(op_type):
            continue
        if "cpu" not in subject.manager.place_kinds(op_type):
            yield Finding(
                "kernels",
                f"op {op_type} has no kernel for the CPU",
                f'write one in {_kernel_file(subject, op_type)}: @kernel("{op_type}", place="cpu", dtypes=FLOATS)',
            )
            continue
        yield from _unread(subject, op_type)
        yield from _run_cases(subject, op_type)


def _kernel_file(subject: Subject, op_type: str) -> str:
    """Where to write a kernel: a pack has one file of them, or a folder."""
    one = subject.source.directory / "kernels.py"
    return shown(one if one.is_file() else subject.source.directory / "kernels" / f"{op_type}.py")


def _run_cases(subject: Subject, op_type: str) -> Iterator[Finding]:
    """Run the cases of an op that the pack defines, or brings kernels for."""
    if not subject.has_cases(op_type):
        fix = case_to_write(subject.manager.op_info(op_type).proto, subject.case_folder)
        yield Finding("kernels", f"op {op_type}: no case runs it", fix)
    reasons = [reason for case in subject.records_of(op_type) for reason in case.check()]
    yield from (Finding("kernels", reason, _MEND) for reason in reasons)
    if not reasons:
        yield from _dtypes(subject, op_type)


def _unread(subject: Subject, op_type: str) -> Iterator[Finding]:
    """Inputs that no kernel of the pack has a parameter for."""
    info = subject.manager.op_info(op_type)
    specs = [s for s in subject.manager.kernel_map(op_type, "cpu") if s.owner == subject.source.distribution]
    read = {slot for s in specs for slot, _, _ in bind_signature(s.function, info.proto).inputs}
    for slot in info.proto.inputs.values():
        if specs and slot.name not in read and not slot.dispensable and slot.name not in info.no_need_buffer_vars:
            yield Finding(
                "kernels",
                f"op {op_type}: no kernel reads input {slot.name}",
                f"give the kernel a positional parameter {slot.name.replace('@GRAD', '_grad')}, or leave the slot out "
                "(reads= of a gradient op names what it reads)",
                note=True,
            )


def _dtypes(subject: Subject, op_type: str) -> Iterator[Finding]:
    """Dtypes that a kernel declares and no case has: the first case, converted."""
    calls = subject.calls_of(op_type)
    promised = {d for s in subject.manager.kernel_map(op_type, "cpu")
                if s.owner == subject.source.distribution for d in s.dtypes}  # fmt: skip
    seen = {dtype for call in calls for dtype in _dtypes_of(call)}
    for dtype in sorted(promised - seen):
        family = FLOATS if dtype in (*FLOATS, "float16", "bfloat16") else INTEGERS if dtype in INTEGERS else ()
        # indices beside floating data keep their dtype
        fitting = ((c, d) for c in calls for d in _dtypes_of(c)[:1] if d in family)
        found = ((c, d) for c, d in fitting if _is_exact(c, d, dtype) and not _run_as(subject, c, d, d))
        call, old = next(found, (None, ""))
        if call is not None and (reason := _run_as(subject, call, old, dtype)):
            yield Finding(
                "kernels",
                f"op {op_type}: a kernel declares {dtype}, but case {call.case} converted to it fails: {reason}",
                f"mend the kernel for {dtype} (a Python number keeps the dtype of an array, a NumPy number may not), "
                "or leave it out of dtypes=",
            )


def _dtypes_of(call: OpCall) -> list[str]:
    """Dtypes of the inputs, floating ones first."""
    found = dict.fromkeys(_dtype(value) for value in call.values.values())
    return sorted(found, key=lambda dtype: dtype in INTEGERS)


def _is_exact(call: OpCall, old: str, new: str) -> bool:
    """Whether integers stay what they are, which no negative one does without a sign."""
    found = [value for value in call.values.values() if old in INTEGERS and _dtype(value) == old]
    limits = np.iinfo(new) if found else None
    return limits is None or all(
        limits.min <= v.min() and v.max() <= limits.max for v in map(elements, found) if v.size
    )


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", ""))


def _run_as(subject: Subject, call: OpCall, old: str, new: str) -> str:
    """Why a call does not run with inputs of one dtype converted to another; "" when it does."""

    def converted(value: Any) -> Any:
        if isinstance(value, LoDTensorArray) or _dtype(value) != old:
            return value
        return with_elements(value, elements(value).astype(_numpy_dtype(new)))

    values = {name: converted(value) for name, value in call.values.items()}
    op = call.desc()
    for attr in _DTYPE_ATTRS:
        if op.attrs.get(attr) == dtype_enum(old):
            op.set_attr(attr, int(dtype_enum(new)))
    held = [name for name, value in values.items() if not isinstance(value, LoDTensor)]
    example = one_op(op, [values], held, "static", subject.manager)
    executor = Executor(prepared=False, checks=CHECKS)
    try:
        executor.run(example.program, example.feed(0), example.fetch, filled_scope(example.params), return_numpy=False)
    except OprackError as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return ""


def _numpy_dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)
