"""LBFGS: steps along a direction that the last gradients say, of a loss that is computed several times for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import InvalidArgumentError

from oprack_optimizer.optimizers.base import Optimizer

if TYPE_CHECKING:
    from oprack.kernel import Array


class LBFGS(Optimizer):
    r"""Quasi-Newton steps for eager parameters (Nocedal, 1980): $$w \leftarrow w - lr \cdot H g$$.

    H comes from the last history_size changes of w and g. `optimizer.step(closure)` is a step, where closure clears the
    gradients, computes the loss, calls backward() and returns the loss. It takes no weight_decay, grad_clip or groups
    of parameters.

    Args:
        learning_rate: The length of a step, a number.
        max_iter: Directions in a step.
        max_eval: Calls of the closure in a step; None: 5/4 of max_iter.
        tolerance_grad: A step ends where no element of g is beyond it.
        tolerance_change: A step ends where no element of w changes by more than it.
        history_size: How many changes of w and g are kept.
        line_search_fn: None, or "strong_wolfe" for steps that lower the loss enough and not too little.

    Raises:
        InvalidArgumentError: line_search_fn is neither, or weight_decay, grad_clip or groups are given.
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        if line_search_fn not in (None, "strong_wolfe"):
            raise InvalidArgumentError(f'LBFGS: line_search_fn is {line_search_fn!r}; expected None or "strong_wolfe"')
        if self.regularization is not None or self.grad_clip is not None or self._groups:
            raise InvalidArgumentError(
                "LBFGS: it takes no weight_decay, grad_clip or groups; add a penalty to the loss of the closure"
            )
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.line_search_fn = line_search_fn
        self._history: deque[tuple[Array, Array]] = deque(maxlen=history_size)
        self._last: tuple[Array, Array] | None = None  # the weights and their gradient before the last direction

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Lower the loss by up to max_iter directions; returns the loss before.

        Raises InvalidArgumentError without a closure.
        """
        if closure is None:
            raise InvalidArgumentError(
                "LBFGS.step: there is no closure; expected a function that clears the gradients, computes the loss, "
                "calls loss.backward() and returns the loss"
            )
        count, first = 0, None

        def evaluate(weights: Array | None) -> tuple[float, Array]:
            nonlocal count, first
            if weights is not None:
                self._write(weights)
            count += 1
            loss = closure()
            first = loss if first is None else first
            return float(loss), self._read(lambda p: p.grad.numpy() if p.grad is not None else np.zeros(p.shape))

        w = self._read(lambda p: p.numpy())
        loss, g = evaluate(None)
        for _ in range(self.max_iter):
            if np.abs(g).max(initial=0.0) <= self.tolerance_grad or count >= self.max_eval:
                break
            self._remember(w, g)
            direction = -self._product(g)
            slope = float(g @ direction)
            if slope > -self.tolerance_change:
                break
            rate = self.get_lr() * (1.0 if self._history else min(1.0, 1.0 / float(np.abs(g).sum())))
            self._last = w, g
            if self.line_search_fn is None:
                new, (loss_new, g_new) = w + rate * direction, evaluate(w + rate * direction)
            else:
                new, loss_new, g_new = self._search(evaluate, w, direction, rate, loss, slope)
            change, w = np.abs(new - w).max(initial=0.0), new
            if change <= self.tolerance_change or abs(loss_new - loss) < self.tolerance_change:
                break
            loss, g = loss_new, g_new
        self._write(w)
        return first

    def _remember(self, w: Array, g: Array) -> None:
        if self._last is not None:
            s, y = w - self._last[0], g - self._last[1]
            if float(s @ y) > 1e-10:
                self._history.append((s, y))

    def _product(self, g: Array) -> Array:
        """H g by the two loops over the history."""
        q, shares = g.copy(), []
        for s, y in reversed(self._history):
            share = float(s @ q) / float(s @ y)
            shares.append(share)
            q -= share * y
        if self._history:
            s, y = self._history[-1]
            q *= float(s @ y) / float(y @ y)
        for (s, y), share in zip(self._history, reversed(shares), strict=True):
            q += (share - float(y @ q) / float(s @ y)) * s
        return q

    def _search(
        self, evaluate: Callable[..., Any], w: Array, direction: Array, rate: float, loss: float, slope: float
    ) -> tuple[Array, float, Array]:
        """A step that lowers the loss by 1e-4 of what the slope promises, and after which the slope is 0.9 of it."""
        low, high = 0.0, float("inf")
        for _ in range(25):
            new = w + rate * direction
            found, g = evaluate(new)
            if not found <= loss + 1e-4 * rate * slope:
                high = rate
            elif float(g @ direction) < 0.9 * slope:
                low = rate
            else:
                break
            rate = 2.0 * rate if high == float("inf") else (low + high) / 2.0
        return new, found, g

    def _read(self, of: Callable[[Any], Array]) -> Array:
        return np.concatenate([np.asarray(of(p), np.float64).ravel() for p in self._eager().parameters])

    def _write(self, weights: Array) -> None:
        at = 0
        for p in self._eager().parameters:
            p.set_value(weights[at : at + p.size].reshape(p.shape))
            at += p.size
