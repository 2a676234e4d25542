"""Sequences that a net goes on with, row by row: the likeliest, drawn ones, or those that a search over beams finds.

Sequences that have ended leave the batch, and so does what the net remembers of them; nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from oprack import functional as F
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import to_tensor
from oprack.interpreter.modes import no_grad
from oprack.python.containers import with_members

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
Choice = Callable[[np.ndarray], np.ndarray]


class Generated(NamedTuple):
    """What was generated.

    Attributes:
        parts: int64 [length] for each sequence, without its start and without its end.
        scores: float64 [sequences], sums of the logarithms of the probabilities of all classes chosen, the end's too.
    """

    parts: list[np.ndarray]
    scores: np.ndarray


def sampler(temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Choice:
    r"""Makes a choice for `generate` that draws: $$P(k) \propto \exp(score_k / temperature)$$ among some classes.

    Draws follow `oprack.seed`.

    Args:
        temperature: Above 0; the smaller, the more often the likeliest.
        top_k: Among how many of the likeliest; None: all.
        top_p: Among the fewest of the likeliest whose probabilities, at this temperature, add up to so much; at most 1
            (nucleus sampling; Holtzman et al., The Curious Case of Neural Text Degeneration, 2020).

    Returns:
        A function of scores [n, classes] to classes int64 [n].

    Raises:
        InvalidArgumentError: An argument is out of its range.
    """
    if not temperature > 0 or not 0 < top_p <= 1 or (top_k is not None and top_k < 1):
        raise InvalidArgumentError(
            f"oprack.sequences.sampler: temperature is {temperature}, top_k {top_k} and top_p {top_p}; expected a "
            "temperature above 0, a top_k of 1 or more or None, and a top_p above 0 and at most 1"
        )

    def choice(scores: np.ndarray) -> np.ndarray:
        weights = np.exp(_log_probabilities(scores / temperature))
        order = np.argsort(-weights, axis=1, kind="stable")
        ordered = np.take_along_axis(weights, order, axis=1)
        before = np.cumsum(ordered, axis=1) - ordered  # what is likelier than each
        dropped = before >= top_p
        dropped[:, 0] = False
        if top_k is not None:
            dropped[:, top_k:] = True
        drawn = F.multinomial(to_tensor(np.where(dropped, 0.0, ordered)), num_samples=1).numpy()
        return np.take_along_axis(order, drawn, axis=1)[:, 0]

    return choice


def likeliest(scores: np.ndarray) -> np.ndarray:
    """The choice of the greatest score, the first of equal ones.

    Args:
        scores: [n, classes].

    Returns:
        int64 [n].
    """
    found: np.ndarray = scores.argmax(axis=1)
    return found


def generate(
    step: Step,
    state: Any,
    starts: Sequence[int] | np.ndarray,
    *,
    end: int,
    longest: int,
    choice: Choice = likeliest,
    beams: int = 1,
    length_penalty: float = 0.0,
) -> Generated:
    r"""Goes on with sequences until each has ended.

    Args:
        step: Called as `step(last, state)` with the class that each sequence has got last, int64 [n] with a LoD of one
            row for each; returns scores of the next ones [n, classes], of which softmax makes probabilities, and the
            state for the next call.
        state: What the net remembers: tensors with LoD, of a sequence for each, tensors without LoD, of a row for each,
            anything with `select(index)`, such as `nn.KeyValueCache`, lists, tuples and dicts of these, and anything
            else, which stays as it is.
        starts: The class that each sequence starts with, [n].
        end: The class that ends a sequence.
        longest: The most classes that a sequence gets.
        choice: How one continuation is chosen: `likeliest`, what `sampler` makes, or a function of one's own of scores
            [n, classes] to classes [n].
        beams: How many continuations of each sequence are searched; above 1 the likeliest sequence as a whole is looked
            for, and `choice` has to be `likeliest`.
        length_penalty: With beams, sequences are compared by $score / length^{penalty}$, their ends counted: 0 compares
            probabilities, which prefers short ones; 1 means over classes.

    Returns:
        What was generated; of n starts n sequences.

    Raises:
        InvalidArgumentError: step returns scores of another number of rows, or an argument is out of its range.
    """
    if beams < 1 or longest < 0 or (beams > 1 and choice is not likeliest):
        raise InvalidArgumentError(
            f"oprack.sequences.generate: beams is {beams}, longest {longest} and choice {choice!r}; expected one beam "
            "or more, a longest of 0 or more, and no choice but `likeliest` where there are several beams"
        )
    run = _Run(step, state, np.asarray(starts, np.int64).reshape(-1), end)
    with no_grad():
        if not len(run.last):
            return Generated([], np.zeros(0))
        if beams > 1:
            return _search(run, longest, beams, length_penalty)
        return _follow(run, longest, choice)


def selected(state: Any, index: np.ndarray) -> Any:
    """The parts of a state that belong to some sequences; see `generate`.

    Args:
        state: The state.
        index: Numbers of sequences, int64 [m], in any order, some perhaps more than once.

    Returns:
        As state, of m sequences.
    """
    if isinstance(state, Tensor):
        return (F.sequence_select if state.lod else F.gather)(state, to_tensor(index))
    if hasattr(state, "select"):
        return state.select(to_tensor(index))
    if isinstance(state, dict):
        return {name: selected(part, index) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return with_members(state, [selected(part, index) for part in state])
    return state


class _Run:
    """The sequences that go on, of which `last` are the last classes."""

    def __init__(self, step: Step, state: Any, last: np.ndarray, end: int) -> None:
        self._step, self._state, self.last, self.end = step, state, last, end

    def scores(self) -> np.ndarray:
        """float64 [n, classes], of the next class of each."""
        rows = len(self.last)
        made, self._state = self._step(to_tensor(self.last, lod=[list(range(rows + 1))]), self._state)
        found = np.asarray(made.numpy(), np.float64)
        if found.ndim != 2 or len(found) != rows or not 0 <= self.end < found.shape[1]:
            raise InvalidArgumentError(
                f"oprack.sequences.generate: step returned scores {list(found.shape)}; expected a row for each of "
                f"{rows} sequences, and more classes than end, which is {self.end}"
            )
        return found

    def go_on(self, index: np.ndarray, last: np.ndarray) -> None:
        """Go on with some sequences, and a class behind each."""
        if len(index) != len(self.last) or (index != np.arange(len(index))).any():
            self._state = selected(self._state, index)
        self.last = last


def _log_probabilities(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=1, keepdims=True)
    found: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def _follow(run: _Run, longest: int, choice: Choice) -> Generated:
    parts: list[list[int]] = [[] for _ in run.last]
    totals, going = np.zeros(len(parts)), np.arange(len(parts))
    for _ in range(longest):
        scores = run.scores()
        chosen = np.asarray(choice(scores), np.int64)
        totals[going] += np.take_along_axis(_log_probabilities(scores), chosen[:, None], axis=1)[:, 0]
        left = np.flatnonzero(chosen != run.end)
        going, chosen = going[left], chosen[left]
        for sequence, k in zip(going, chosen, strict=True):
            parts[sequence].append(int(k))
        if not len(left):
            break
        run.go_on(left, chosen)
    return Generated([np.array(part, np.int64) for part in parts], totals)


class _Beam(NamedTuple):
    total: float
    part: tuple[int, ...]


def _search(run: _Run, longest: int, beams: int, penalty: float) -> Generated:
    def rank(total: float, length: int) -> float:
        return float(total / max(length, 1) ** penalty)

    count = len(run.last)
    found: list[list[tuple[float, _Beam]]] = [[] for _ in range(count)]  # ended, or as long as may be, best first
    going = [[_Beam(0.0, ())] for _ in range(count)]
    for length in range(1, longest + 1):
        logs = _log_probabilities(run.scores())
        first, parents, last = 0, [], []
        for i, own in enumerate(going):
            totals = (np.array([beam.total for beam in own])[:, None] + logs[first : first + len(own)]).reshape(-1)
            # an end takes at most one place for each beam, so that enough go on
            best = np.argsort(-totals, kind="stable")[: 2 * beams] if own else ()
            going[i] = []
            for k in best:
                parent, chosen = divmod(int(k), logs.shape[1])
                beam = _Beam(float(totals[k]), (*own[parent].part, chosen))
                if chosen == run.end or length == longest:
                    found[i].append((rank(beam.total, length), beam))
                elif len(going[i]) < beams:
                    going[i].append(beam)
                    parents.append(first + parent)
                    last.append(chosen)
            first += len(own)
            found[i] = sorted(found[i], key=lambda ended: -ended[0])[:beams]
            # what goes on only loses probability, and is at best compared at its greatest length
            if len(found[i]) == beams and going[i] and found[i][-1][0] >= rank(going[i][0].total, longest):
                del parents[len(parents) - len(going[i]) :], last[len(last) - len(going[i]) :]
                going[i] = []
        if not parents:
            break
        run.go_on(np.array(parents, np.int64), np.array(last, np.int64))
    best_of = [ended[0][1] if ended else _Beam(0.0, ()) for ended in found]
    parts = [beam.part[:-1] if beam.part[-1:] == (run.end,) else beam.part for beam in best_of]
    return Generated([np.array(p, np.int64) for p in parts], np.array([beam.total for beam in best_of]))
