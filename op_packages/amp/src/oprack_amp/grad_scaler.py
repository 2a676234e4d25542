"""GradScaler: keeps gradients within the range of half precision, by a scale of the loss that adapts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from oprack import functional, no_grad, to_tensor
from oprack.errors import InvalidArgumentError, PreconditionNotMetError

if TYPE_CHECKING:
    from oprack import Parameter, Tensor


class Steps(Protocol):
    """What a GradScaler needs of an optimizer."""

    parameter_list: Sequence[Parameter] | None

    def step(self) -> None:
        """Update the parameters by their gradients."""


_STATE = ("scale", "good_steps", "bad_steps")


class GradScaler:
    """Scales a loss before backward and gradients back before a step; a step with infinities or NaN is left out.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()

    The scale grows after enough steps in a row without infinities and NaN, and shrinks after steps with them, not below
    1. Sources: Micikevicius et al., Mixed Precision Training, 2018; paddle.amp.GradScaler; the ops
    check_finite_and_unscale and update_loss_scaling.

    Args:
        enable: Whether to scale; False: losses and gradients pass through.
        init_loss_scaling: The scale to start from, above 0.
        incr_ratio: The factor by which the scale grows, above 1.
        decr_ratio: The factor by which it shrinks, between 0 and 1.
        incr_every_n_steps: After how many finite steps in a row it grows.
        decr_every_n_nan_or_inf: After how many steps with infinities or NaN it shrinks.
        use_dynamic_loss_scaling: Whether the scale changes at all.

    Raises:
        InvalidArgumentError: A ratio is on the wrong side of 1, or a count below 1.
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        """Raises InvalidArgumentError for ratios on the wrong side of 1, and counts below 1."""
        if not (init_loss_scaling > 0 and incr_ratio > 1 and 0 < decr_ratio < 1):
            raise InvalidArgumentError(
                f"GradScaler: init_loss_scaling={init_loss_scaling!r}, incr_ratio={incr_ratio!r}, "
                f"decr_ratio={decr_ratio!r}; expected a scale above 0, a growth above 1 and a decay between 0 and 1"
            )
        if min(incr_every_n_steps, decr_every_n_nan_or_inf) < 1:
            raise InvalidArgumentError(
                f"GradScaler: incr_every_n_steps={incr_every_n_steps!r}, "
                f"decr_every_n_nan_or_inf={decr_every_n_nan_or_inf!r}; expected numbers of steps, 1 or more"
            )
        self._enabled, self._dynamic = enable, use_dynamic_loss_scaling
        self._rule = {
            "incr_every_n_steps": incr_every_n_steps,
            "decr_every_n_nan_or_inf": decr_every_n_nan_or_inf,
            "incr_ratio": incr_ratio,
            "decr_ratio": decr_ratio,
        }
        self._scale = to_tensor([init_loss_scaling], "float32")
        self._good_steps, self._bad_steps = to_tensor([0], "int32"), to_tensor([0], "int32")
        self._found: dict[int, Any] = {}

    def is_enable(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the scale adapts."""
        return self._dynamic

    @property
    def loss_scaling(self) -> float:
        """The scale; waits for a device."""
        return float(self._scale.item())

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale, for backward."""
        if not self._enabled:
            return loss
        if self._scale.place != loss.place:
            for name in _STATE:
                setattr(self, f"_{name}", getattr(self, f"_{name}").to(loss.place))
        factor = self._scale.astype(loss.dtype)
        return loss * (factor.reshape([1] * len(loss.shape)) if loss.shape else factor[0])

    def unscale_(self, optimizer: Steps) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once per step; clip them afterwards, say.

        Raises PreconditionNotMetError when they were divided already, or when there is none.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise PreconditionNotMetError(
                f"GradScaler: the gradients of this {type(optimizer).__name__} were unscaled already; call it once "
                "between backward() and update()"
            )
        having = [p for p in optimizer.parameter_list or () if p.grad is not None]
        # An optimizer of which each rank has a part asks the other ranks, so that all step or none does.
        any_rank = getattr(optimizer, "any_rank", None)
        if not having and any_rank is None:
            raise PreconditionNotMetError(
                f"GradScaler: no parameter of this {type(optimizer).__name__} has a gradient; call "
                "scaler.scale(loss).backward() first"
            )
        on_ranks = [p for p in having if _gradient(p).layout is not None and not _gradient(p).is_sparse]
        bad: Any = self._unscale_on_ranks(on_ranks) if on_ranks else None
        having = [p for p in having if not any(p is q for q in on_ranks)]
        for dtype in dict.fromkeys(_gradient(p).dtype for p in having):
            group = [p for p in having if _gradient(p).dtype == dtype]
            values = [_values(_gradient(p)) for p in group]
            with no_grad():
                out, found = functional.check_finite_and_unscale(values, self._scale.astype(dtype))
                bad = found if bad is None else functional.logical_or(bad, found)
            for p, value in zip(group, out, strict=True):
                p.grad = _with_values(_gradient(p), value)
        if any_rank is not None:
            bad = to_tensor([any_rank(bad is not None and bool(bad.item()))], place=self._scale.place)
        self._found[id(optimizer)] = bad

    def _unscale_on_ranks(self, parameters: Sequence[Parameter]) -> Tensor:
        """As unscale_, part by part, of parameters on several ranks: whether a gradient is not finite anywhere."""
        totals: dict[Any, Any] = {}
        with no_grad():
            for p in parameters:
                gradient = _gradient(p)
                # 0 where all is finite, else NaN; what ranks have of it is added up when it is read
                zero, dtype = functional.reduce_sum(gradient * 0.0, reduce_all=True), gradient.dtype
                totals[dtype] = totals[dtype] + zero if dtype in totals else zero
                p.grad = gradient * (1.0 / self._scale.astype(dtype)).reshape([1] * len(gradient.shape))
        finite = all([bool(np.isfinite(total.numpy()).all()) for total in totals.values()])
        return to_tensor([not finite], place=self._scale.place)

    def step(self, optimizer: Steps) -> None:
        """Unscale unless that was done, and let the optimizer step when every gradient is finite."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        if not bool(self._found[id(optimizer)].item()):
            optimizer.step()

    def update(self) -> None:
        """Adapt the scale to what the steps since the last update found."""
        found, self._found = list(self._found.values()), {}
        if not (self._enabled and self._dynamic and found):
            return
        with no_grad():
            bad = found[0]
            for other in found[1:]:
                bad = functional.logical_or(bad, other)
            # the op passes gradients on; there is nothing left to do with these
            nothing = [to_tensor(np.zeros(1, np.float32), place=self._scale.place)]
            state = self._scale, self._good_steps, self._bad_steps
            _, *new = functional.update_loss_scaling(nothing, bad, *state, **self._rule)
        self._scale, self._good_steps, self._bad_steps = new

    def minimize(self, optimizer: Steps, scaled_loss: Any) -> None:
        """step and update; backward of the scaled loss was called before."""
        self.step(optimizer)
        self.update()

    def state_dict(self) -> dict[str, Any]:
        """Scale and counts as arrays, by name."""
        return {name: getattr(self, f"_{name}").numpy().copy() for name in _STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state_dict. Raises InvalidArgumentError when a part is missing."""
        missing = [name for name in _STATE if name not in state]
        if missing:
            raise InvalidArgumentError(
                f"GradScaler: the state has {', '.join(sorted(state)) or 'nothing'}; {', '.join(missing)} is missing"
            )
        for name in _STATE:
            mine = getattr(self, f"_{name}")
            setattr(self, f"_{name}", to_tensor(np.asarray(state[name]).reshape(1), mine.dtype, place=mine.place))


def _gradient(parameter: Parameter) -> Tensor:
    """The gradient of a parameter that has one."""
    return cast("Tensor", parameter.grad)


def _values(gradient: Tensor) -> Tensor:
    """What a gradient holds, as a dense tensor: the listed rows of a sparse one."""
    return to_tensor(gradient.value.value, place=gradient.place) if gradient.is_sparse else gradient


def _with_values(gradient: Tensor, values: Tensor) -> Tensor:
    """A gradient of the same kind that holds these values."""
    if not gradient.is_sparse:
        return values
    rows = gradient.value
    return to_tensor(type(rows)(rows.rows, values.value.array, rows.height, place=rows.place, check=False))
