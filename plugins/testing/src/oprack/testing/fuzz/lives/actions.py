"""What may happen to a net that lives: one class for each action, with what it may be given; the first is the plainest.

`apply(subject)` does it and returns what there is to see beside the subject's state, arrays by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import oprack
from oprack.testing.fuzz.lives.subjects import WIDTH, Call, NetSubject, folder, fresh, in_fork, new_part


def among(*choices: Any, size: bool = False) -> Any:
    """A field that is one of these; without choices, of the kinds of parts that packs bring.

    size: it changes the example, but not what kind of life it is.
    """
    return field(default=choices[0] if choices else "", metadata={"choices": choices, "size": size})


@dataclass(frozen=True, repr=False)
class Action:
    """Something that happens to a subject.

    Attributes:
        often: How many times as often as others it happens.
    """

    often: ClassVar[int] = 1

    def apply(self, subject: Any) -> dict[str, Any]:
        """Do it; returns arrays by name."""
        raise NotImplementedError

    def applies(self, subject: Any) -> bool:
        """Whether it can be done now."""
        return True

    def __repr__(self) -> str:
        """Source that makes it, without defaults."""
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if not is_plain(self, f)]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def labels(self) -> set[str]:
        """What lives with the same defect have in common: its name, and what is not plain."""
        name = type(self).__name__
        odd = [f.name for f in fields(self) if not (f.metadata["size"] or is_plain(self, f))]
        return {name, *(f"{name} {n}" for n in odd)}


def is_plain(action: Action, of: Any) -> bool:
    """Whether a field has its default, which is not True for 1, nor -0.0 for 0.0."""
    return repr(getattr(action, of.name)) == repr(of.default)


WITHIN: dict[str, Callable[[Any], Any]] = {
    "": lambda s: s,
    "list": lambda s: [s],
    "tuple": lambda s: ("s", [s]),
    "dict": lambda s: {"s": [s]},
}
"""What an argument that is no tensor may be in."""


@dataclass(frozen=True, repr=False)
class CallNet(Action):
    """Call it with new rows; s is an argument that is no tensor, alone or in a list or dict.

    What is wide, or of another dtype, may be refused.
    """

    often: ClassVar[int] = 3
    rows: int = among(2, 1, 3, 5, size=True)
    s: Any = among(1.0, True, 1, 0.0, -0.0, None)  # noqa: RUF009 (a field, as all others)
    within: str = among(*WITHIN)
    x_grad: bool = among(False, True, size=True)
    no_grad: bool = among(False, True)
    autocast: bool = among(False, True)
    wide: bool = among(False, True)

    def applies(self, subject: NetSubject) -> bool:
        if self.s is None and self.wide:
            return False  # each is an error, and which one is raised depends on the way
        if subject.copies:  # formulas know neither
            return not (self.autocast or self.wide)
        return not self.autocast or subject.dtype == "float32"

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        array = fresh([self.rows, WIDTH + self.wide], subject.number(), subject.dtype)
        x, s = subject.tensor(array, self.x_grad), WITHIN[self.within](self.s)
        with oprack.set_grad_enabled(not self.no_grad):
            if self.autocast:
                with oprack.amp.autocast():
                    call = subject.called(x, s)
            else:
                call = subject.called(x, s)
        subject.keep(call)
        returned = self.no_grad and call.y is call.x  # the argument itself goes on requiring what it did
        return {"y": call.y.numpy(), "y requires a gradient": np.array(self._recorded(call) and not returned)}

    @staticmethod
    def _recorded(call: Call) -> bool:
        return bool(call.kept[3]) if call.kept else call.y.requires_grad


@dataclass(frozen=True, repr=False)
class Backward(Action):
    """Gradients of a loss of the last call, or of the first that has none yet."""

    first: bool = among(False, True, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return bool(subject.pending)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        subject.asked = subject.pending.pop(0 if self.first else -1)
        subject.backward(subject.asked)
        return {}


OPTIMIZERS: dict[str, tuple[Any, ...]] = {
    "SGD": (0.1,),
    "Momentum": (0.1, 0.9),
    "Adam": (0.1,),
    "AdamW": (0.1,),
    "Adagrad": (0.1,),
    "Adamax": (0.1,),
    "RMSProp": (0.01,),
}
LINEAR = ("SGD", "Momentum")
"""Those that do not turn the rounding of a gradient that is 0 into a whole step."""


@dataclass(frozen=True, repr=False)
class Optimize(Action):
    """A new optimizer."""

    name: str = among(*OPTIMIZERS, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return bool(list(subject.net.parameters())) and (
            self.name in LINEAR or (subject.dtype == "float64" and not subject.copies)
        )

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        subject.optimize(self.name, OPTIMIZERS[self.name])
        return {}


@dataclass(frozen=True, repr=False)
class Step(Action):
    """A step of the optimizer; then gradients are cleared or go on being added to."""

    clear: bool = among(True, False, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return subject.optimizer is not None and any(p.grad is not None for p in subject.net.parameters())

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        for call in subject.pending:
            call.changed = True
        subject.optimizer.step()
        if self.clear:
            subject.optimizer.clear_grad()
        return {}


class _OfParameters(Action):
    def applies(self, subject: NetSubject) -> bool:
        return bool(list(subject.net.parameters()))


@dataclass(frozen=True, repr=False)
class Freeze(_OfParameters):
    """Clear or set requires_grad of a parameter, by its number, or of all (-1)."""

    parameter: int = among(0, 1, 2, -1, size=True)
    frozen: bool = among(True, False)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        parameters = list(subject.net.parameters())
        for p in parameters if self.parameter < 0 else [parameters[self.parameter % len(parameters)]]:
            p.requires_grad = not self.frozen
        return {}


@dataclass(frozen=True, repr=False)
class Train(Action):
    """train() or eval() of a part, by its number, or of all (-1)."""

    part: int = among(-1, 0, 1, 2)
    mode: bool = among(False, True, size=True)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        parts = list(subject.net.parts)
        (subject.net if self.part < 0 else parts[self.part % len(parts)]).train(self.mode)
        return {}


@dataclass(frozen=True, repr=False)
class Set(Action):
    """Set a plain attribute of the parts that have it; None makes a call fail."""

    value: Any = among(2.0, 1, True, 1.0, 0.0, -0.0, None, size=True)  # noqa: RUF009

    def applies(self, subject: NetSubject) -> bool:
        return any(hasattr(part, "setting") for part in subject.net.parts)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        for part in subject.net.parts:
            if hasattr(part, "setting"):
                part.setting = self.value
        return {}


@dataclass(frozen=True, repr=False)
class Hook(Action):
    """Put a forward hook on a part that doubles what it gives, or take it off."""

    part: int = among(0, 1, size=True)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        part = list(subject.net.parts)[self.part % len(subject.net.parts)]
        if id(part) in subject.hooks:
            subject.hooks.pop(id(part))()
        else:
            subject.hooks[id(part)] = part.register_forward_hook(lambda module, x, y: y * 2.0)
        return {}

    def applies(self, subject: NetSubject) -> bool:
        return not subject.copies  # formulas know no hooks


@dataclass(frozen=True, repr=False)
class Replace(_OfParameters):
    """Put another Parameter in the place of one."""

    parameter: int = among(0, 1, 2, size=True)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        module, name = subject.owner(self.parameter)
        old = getattr(module, name)
        setattr(module, name, oprack.Parameter(fresh(old.shape, subject.number(), subject.dtype)))
        return {}


@dataclass(frozen=True, repr=False)
class Tie(_OfParameters):
    """Put one parameter in the place of the next one of its shape."""

    parameter: int = among(0, 1, 2, size=True)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        module, name = subject.owner(self.parameter)
        tied = getattr(module, name)
        for other in range(self.parameter + 1, len(list(subject.net.parameters()))):
            module, name = subject.owner(other)
            if getattr(module, name).shape == tied.shape:
                setattr(module, name, tied)
                break
        return {}

    def applies(self, subject: NetSubject) -> bool:
        return self.parameter < len(list(subject.net.parameters()))


@dataclass(frozen=True, repr=False)
class AddPart(Action):
    """Add a part at the end, or put it in the place of one (by its number)."""

    kind: str = among(size=True)
    instead: int = among(-1, 0, 1, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return len(subject.net.parts) < 4 and subject.takes(self.kind)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        with oprack.unique_name.guard(f"later{subject.number()}_"):
            part = new_part(self.kind, subject.dtype, subject.number())
        if self.instead < 0:
            subject.net.parts.append(part)
        else:
            subject.net.parts[self.instead % len(subject.net.parts)] = part
        return {}

    @property
    def labels(self) -> set[str]:
        return {"AddPart", self.kind}


IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "scale_": lambda t, ones: t.scale_(2.0),
    "add_": lambda t, ones: t.add_(ones),
    "sub_": lambda t, ones: t.sub_(ones),
    "fill_": lambda t, ones: t.fill_(0.5),
    "zero_": lambda t, ones: t.zero_(),
    "copy_": lambda t, ones: t.copy_(ones),
    "set_value": lambda t, ones: t.set_value(ones.numpy() * 0.25),
    "setitem": lambda t, ones: t.__setitem__(0, 0.75),
}


@dataclass(frozen=True, repr=False)
class Change(Action):
    """Write to a tensor in place: input or result of the last call, a parameter or a buffer."""

    what: str = among("input", "result", "parameter", "buffer")
    how: str = among(*IN_PLACE, size=True)
    number: int = among(0, 1, 2, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return bool(self._among(subject))

    def _among(self, subject: NetSubject) -> list[Any]:
        if self.what == "parameter":
            return list(subject.net.parameters())
        if self.what == "buffer":
            return [b for _, b in subject.net.named_buffers()]
        return [call.x if self.what == "input" else call.y for call in subject.calls[-1:]]

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        tensors = self._among(subject)
        tensor = tensors[self.number % len(tensors)]
        for call in subject.pending:
            call.changed = True
        with oprack.no_grad():
            IN_PLACE[self.how](tensor, oprack.ones(tensor.shape, dtype=tensor.dtype))
        return {}


@dataclass(frozen=True, repr=False)
class Save(Action):
    """Write the state of net and optimizer to files and read them."""

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        states = [subject.net.state_dict(), {} if subject.optimizer is None else subject.optimizer.state_dict()]
        read = []
        with folder() as at:
            for i, state in enumerate(states):
                oprack.io.save_state(at / f"{i}.npz", state)
                read.append(oprack.io.load_state(at / f"{i}.npz"))
        subject.saved = (read[0], read[1])
        return {}


@dataclass(frozen=True, repr=False)
class Load(Action):
    """Back to what was saved; refused where the net has other parameters by now."""

    def applies(self, subject: NetSubject) -> bool:
        return subject.saved is not None

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        assert subject.saved is not None
        for call in subject.pending:
            call.changed = True
        subject.net.set_state_dict(subject.saved[0])
        if subject.optimizer is not None and subject.saved[1]:
            subject.optimizer.load_state_dict(subject.saved[1])
        return {}


@dataclass(frozen=True, repr=False)
class Threads(Action):
    """Several threads call it and ask for gradients, each with its own rows."""

    count: int = among(2, 3, size=True)
    turns: int = among(4, 8, 16, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return not subject.has("writes")

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        arrays = [fresh([2, WIDTH], subject.number(), subject.dtype) for _ in range(self.count)]

        def job(x: np.ndarray) -> Callable[[], list[list[np.ndarray]]]:
            return lambda: [subject.value_and_gradient(x) for _ in range(self.turns)]

        results = subject.at_once([job(x) for x in arrays])
        return {
            f"{what} of thread {i}, turn {turn}": array
            for i, turns in enumerate(results)
            for turn, pair in enumerate(turns)
            for what, array in zip(("y", "gradient of x"), pair, strict=True)
        }


@dataclass(frozen=True, repr=False)
class Fork(Action):
    """A forked process calls it, as this one did before, which saves imports; nothing changes here."""

    def applies(self, subject: NetSubject) -> bool:
        return bool(subject.calls)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        x = fresh(subject.calls[-1].x.shape, subject.number(), subject.dtype)
        return {"y": in_fork(lambda: subject.called(subject.tensor(x, False), 1.0).y.numpy())}


@dataclass(frozen=True, repr=False)
class Export(Action):
    """Keep the net as it is, as a model for two rows or for any number."""

    open_dims: bool = among(False, True, size=True)

    def applies(self, subject: NetSubject) -> bool:
        # what a model is made of runs as in evaluation
        return not any(p.training if hasattr(p, "trains") else hasattr(p, "writes") for p in subject.net.parts)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        subject.model_rows = None if self.open_dims else 2
        subject.export(self.open_dims)
        return {}


@dataclass(frozen=True, repr=False)
class Infer(Action):
    """Run the model that was kept."""

    rows: int = among(2, 1, 3, 5, size=True)

    def applies(self, subject: NetSubject) -> bool:
        return subject.model is not None and subject.model_rows in (None, self.rows)

    def apply(self, subject: NetSubject) -> dict[str, Any]:
        assert subject.model is not None
        return {"y": subject.model(fresh([self.rows, WIDTH], subject.number(), subject.dtype))}


CALLING: tuple[type[Action], ...] = (CallNet, Backward, Optimize, Step, Freeze, Train, Set, Replace, Tie, AddPart)
CALLING += (Change, Save, Load)
EXPORTING: tuple[type[Action], ...] = (Export, Infer)
AT_ONCE: tuple[type[Action], ...] = (Threads, Fork)
