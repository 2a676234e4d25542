"""x[...]: basic indexing, by ops for slices, strided slices and new dims, of whatever has `_apply`."""

from __future__ import annotations

import numbers
from dataclasses import field
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError
from oprack.python.records import dataclass
from oprack.types import VarType

if TYPE_CHECKING:
    from oprack.layers import Variable

_END = 2**31 - 1


@dataclass
class _Cut:
    """A parsed index.

    Attributes:
        axes: The dims that are sliced.
        starts: For each, an int or an integer Variable of one element.
        ends: Likewise.
        steps: Likewise, ints alone.
        gone: Dims that an integer index removes.
        new: Positions in the result where None inserts a dim.
    """

    axes: list[int] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)

    def add(self, axis: int, start: Any, end: Any, step: int = 1) -> None:
        self.axes.append(axis)
        self.starts.append(start)
        self.ends.append(end)
        self.steps.append(step)


def getitem(self: Variable, index: Any) -> Variable:
    """x[2], x[1:3], x[..., 0], x[None], x[::-1]; an index may be an integer Variable of one element.

    Args:
        self: The Variable or tensor.
        index: What is taken of it.

    Returns:
        The part, in memory of its own.

    Raises:
        InvalidArgumentError: The index is out of range, or of a kind that has no op.
    """
    x = self
    cut = _parse(x, index if isinstance(index, tuple) else (index,))
    out = _sliced(x, cut) if cut.axes else x
    if cut.new:
        out = out._apply("unsqueeze2", {"X": out}, {"axes": cut.new}, ("Out", "XShape"))
    return out if out is not x else x._apply("assign", {"X": x}, {})


def _dims(x: Variable) -> tuple[int, ...]:
    """The dims, -1 for one that is not known; a captured function's Variables answer with numbers known in a run."""
    return (x.desc.shape or ()) if hasattr(x, "desc") else x.shape


def _subject(x: Variable) -> str:
    """What is indexed, for messages; a stand-in for an eager tensor says so by its name."""
    return f"variable {x.name!r}" if hasattr(x, "desc") else x.name


def _parse(x: Variable, items: tuple[Any, ...]) -> _Cut:
    rank = len(_dims(x))
    count = sum(item is not None and item is not Ellipsis for item in items)
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if count > rank or len(ellipses) > 1:
        raise InvalidArgumentError(
            f"index {_shown(items)} of {_subject(x)} of shape {list(_dims(x))}: expected at most {rank} indices "
            "and one `...`"
        )
    if ellipses:
        i = ellipses[0]
        items = (*items[:i], *[slice(None)] * (rank - count), *items[i + 1 :])
    cut, axis = _Cut(), 0
    for item in items:
        if item is None:
            cut.new.append(axis - len(cut.gone) + len(cut.new))
            continue
        if isinstance(item, slice):
            _add_slice(x, cut, axis, item)
        else:
            _add_integer(x, cut, axis, item)
        axis += 1
    return cut


def _add_slice(x: Variable, cut: _Cut, axis: int, item: slice) -> None:
    for part in (item.start, item.stop, item.step):
        if part is not None and not isinstance(part, numbers.Integral) and not hasattr(part, "desc"):
            raise InvalidArgumentError(f"index of {_subject(x)}: {item} has {part!r}; expected an integer")
    step = 1 if item.step is None else item.step
    if hasattr(step, "desc") or step == 0:
        raise InvalidArgumentError(f"index of {_subject(x)}: step of {item}; expected an int other than 0")
    if item.start is None and item.stop is None and step == 1:
        return
    start = (0 if step > 0 else _END) if item.start is None else item.start
    cut.add(axis, start, _stop(x, axis, item.stop, int(step)), int(step))


def _stop(x: Variable, axis: int, stop: Any, step: int) -> Any:
    """The end of a slice as the op takes it.

    With a negative step, an end of -1 means to the op that the first element is included; so a negative stop, which
    counts from the end, has to be resolved here.
    """
    if stop is None:
        return _END if step > 0 else -1
    if step > 0 or hasattr(stop, "desc") or stop >= 0:
        return stop
    if _dims(x)[axis] < 0:
        raise InvalidArgumentError(
            f"index of {_subject(x)}: a stop of {stop} with step {step} in dim {axis}, whose size is not known; "
            "expected a stop that counts from the front"
        )
    return max(stop + _dims(x)[axis], -1)


def _add_integer(x: Variable, cut: _Cut, axis: int, item: Any) -> None:
    if hasattr(item, "desc"):
        if item.dtype not in ("int32", "int64"):
            raise InvalidArgumentError(
                f"index of {_subject(x)} is {item.dtype} variable {item.name!r}; expected int32 or int64 of one "
                "element; select by a mask with layers.where or layers.masked_select"
            )
        cut.add(axis, item, item + 1)
    elif isinstance(item, numbers.Integral) and not isinstance(item, bool):
        i, size = int(item), _dims(x)[axis]
        if size >= 0 and not -size <= i < size:
            raise InvalidArgumentError(
                f"index {i} of {_subject(x)} is out of range for dim {axis} of size {size}; expected {-size} to "
                f"{size - 1}"
            )
        cut.add(axis, i, i + 1 if i != -1 else _END)
    else:
        raise InvalidArgumentError(
            f"index of {_subject(x)} is {type(item).__name__}; expected int, slice, None, `...` or an integer "
            "Variable of one element; take rows by number with layers.gather"
        )
    cut.gone.append(axis)


def _sliced(x: Variable, cut: _Cut) -> Variable:
    inputs: dict[str, Any] = {"Input": x}
    attrs: dict[str, Any] = {
        "axes": cut.axes,
        "decrease_axis": cut.gone,
        "infer_flags": [
            -1 if hasattr(s, "desc") or hasattr(e, "desc") else 1 for s, e in zip(cut.starts, cut.ends, strict=True)
        ],
    }
    for attr, slot, values in (("starts", "StartsTensorList", cut.starts), ("ends", "EndsTensorList", cut.ends)):
        if any(hasattr(v, "desc") for v in values):
            inputs[slot] = [v if hasattr(v, "desc") else _number(x, v) for v in values]
        attrs[attr] = [-1 if hasattr(v, "desc") else int(v) for v in values]
    if all(step == 1 for step in cut.steps):
        return x._apply("slice", inputs, attrs)
    return x._apply("strided_slice", inputs, attrs | {"strides": cut.steps})


def _number(x: Variable, value: int) -> Variable:
    attrs = {"shape": [1], "dtype": int(VarType.INT64), "value": float(value), "str_value": str(value)}
    return x._apply("fill_constant", {}, attrs)


def _shown(items: tuple[Any, ...]) -> str:
    return "[" + ", ".join(getattr(i, "name", None) or repr(i) for i in items) + "]"
