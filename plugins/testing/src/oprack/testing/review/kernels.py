"""Whether cases give what they expect, and kernels run with every dtype that they declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.kernel import bind_signature
from oprack.runtime import Executor
from oprack.tensor import LoDTensor
from oprack.testing.case_folder import case_to_write
from oprack.testing.op_case import OpCase, build
from oprack.testing.review.subject import Finding, Subject
from oprack.testing.runner import CHECKS
from oprack.types import FLOATS, INTEGERS


def review(subject: Subject) -> Iterator[Finding]:
    """Run all cases as the conformance tests do, then one case of each op with the dtypes that no case has."""
    if subject.case_error:
        yield Finding("kernels", subject.case_error, "mend the file of cases")
    for op_type in sorted(subject.manifest.kernels):
        if subject.manager.has_op(op_type):
            yield from _run_cases(subject, op_type)
    for op_type in subject.ops:
        if subject.runs_itself(op_type):
            continue
        if "cpu" not in subject.manager.place_kinds(op_type):
            yield Finding(
                "kernels",
                f"op {op_type} has no kernel for the CPU",
                f'write one in kernels/{op_type}.py: @kernel("{op_type}", place="cpu", dtypes=FLOATS)',
            )
            continue
        yield from _unread(subject, op_type)
        yield from _run_cases(subject, op_type)


def _run_cases(subject: Subject, op_type: str) -> Iterator[Finding]:
    """Run the cases of an op that the pack defines, or brings kernels for."""
    cases = subject.cases_of(op_type)
    if not cases:
        fix = case_to_write(subject.manager.op_info(op_type).proto)
        yield Finding("kernels", f"op {op_type}: no case runs it", fix)
    reasons = [reason for case in cases for reason in case.check()]
    for reason in reasons:
        yield Finding("kernels", reason, "mend the kernel, the rule or the case, whichever is wrong")
    if cases and not reasons:
        yield from _dtypes(subject, op_type, cases)


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


def _dtypes(subject: Subject, op_type: str, cases: list[OpCase]) -> Iterator[Finding]:
    """Dtypes that a kernel declares and no case has: the first case, converted."""
    promised = {d for s in subject.manager.kernel_map(op_type, "cpu")
                if s.owner == subject.source.distribution for d in s.dtypes}  # fmt: skip
    seen = {_dtype(value) for case in cases for value in _values(case)}
    for dtype in sorted(promised - seen):
        family = FLOATS if dtype in (*FLOATS, "float16", "bfloat16") else INTEGERS
        case = next((c for c in cases if _dtype(next(iter(_values(c)), None)) in family), None)
        if case is None:
            continue
        if reason := _run_as(case, _dtype(next(iter(_values(case)))), dtype):
            yield Finding(
                "kernels",
                f"op {op_type}: a kernel declares {dtype}, but case {case.id} converted to it fails: {reason}",
                f"mend the kernel for {dtype} (a Python number keeps the dtype of an array, a NumPy number may not), "
                "or leave it out of dtypes=",
            )


def _values(case: OpCase) -> Iterator[Any]:
    for value in case.inputs.values():
        yield from value if isinstance(value, list) else [value]


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", None) or np.asarray(value).dtype)


def _run_as(case: OpCase, old: str, new: str) -> str:
    """Why a case does not run with inputs of one dtype converted to another; "" when it does."""

    def converted(value: Any) -> Any:
        if isinstance(value, list):
            return [converted(v) for v in value]
        if _dtype(value) != old or not isinstance(value, LoDTensor | np.ndarray):
            return value
        array = value.array if isinstance(value, LoDTensor) else value
        lod = value.lod if isinstance(value, LoDTensor) else []
        return LoDTensor(array.astype(_numpy_dtype(new)), lod)

    inputs = {slot: converted(value) for slot, value in case.inputs.items()}
    try:
        built = build(replace(case, outputs=dict.fromkeys(case.outputs)), inputs)
        executor = Executor(prepared=False, checks=CHECKS)
        executor.run(built.program, built.feed, built.outputs, built.scope(), return_numpy=False)
    except OprackError as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return ""


def _numpy_dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)
