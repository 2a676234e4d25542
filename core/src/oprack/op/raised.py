"""Who raised: the kernel or the facet of an op in which an exception came up, and the distribution that brought it.

A kernel or a rule may come from another pack than the op, so that the op's pack alone would be the wrong one to blame.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from oprack.errors import OprackError
from oprack.op.facets import FACETS

if TYPE_CHECKING:
    from oprack.op.info import OpInfo

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
