"""What a worker does with a model before it serves: warms it up, and finds out whether and how requests may be joined.

That a model's outputs have a row for each row of its inputs does not say that the rows are independent of each other:
the program has to prove it, by the rules of splitting of its ops. And two requests run alone and joined, with values
of like and of unlike size; only if each gets the same numbers both times are requests joined later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from oprack.errors import OprackError

from oprack_serve import joining
from oprack_serve.joining import Feed, JoinRule
from oprack_serve.signature import Signature, Tensor, TensorSpec

SIZES = (64, 128, 320, 32, 16, 8, 4, 2, 1)
"""What is tried, one after the other, for dims that the program leaves open."""
MAGNITUDES = ((1.0, 1.0), (1e3, 1.0), (1.0, 1e-3))
"""Of the values of the two requests, for each trial: what couples entries may do so for large values alone."""
TOLERANCE = 1e-4
"""Of the largest value of an output: kernels round otherwise for other batch sizes."""

Run = Callable[[Feed], dict[str, Tensor]]
Proof = Callable[[dict[str, tuple[int, ...]]], str]
"""From the shapes that inputs were fed in to why entries of a batch may depend on each other, "" if they do not."""
Example = dict[str, dict[str, Any]]
"""By input: its shape, and its lod."""


@dataclass
class Findings:
    """What a probe found: how requests are joined, how many runs warmed the model up, and why it could not be warmed
    up ("" if it was). outputs: dtype and number of LoD levels that each output really has.
    """

    rule: JoinRule
    warmed: int
    why: str = ""
    outputs: dict[str, tuple[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)


def probe(signature: Signature, run: Run, proof: Proof, declared: list[Example], recorded: list[Example]) -> Findings:
    """Warm a model up and find out how its requests may be joined.

    Args:
        signature: What the model declares.
        run: Runs the model on one feed.
        proof: Says of the program whether entries of a batch depend on each other.
        declared: Examples that have to run, else their error is raised.
        recorded: Shapes that clients sent to an earlier version, which may fit no more.
    """
    random = np.random.default_rng(0)
    for example in declared:
        run(_of_example(signature, random, example))
    warmed = len(declared) + _warm_up(signature, run, random, recorded)
    why = ""
    fixed = [spec.name for spec in signature.inputs if not spec.shape or spec.shape[0] != -1]
    for feeds in _feeds(signature, random, declared, [(3,)] if fixed else [(3,), (4, 2)]):
        try:
            alone = [run(feed) for feed in feeds]
        except (OprackError, ArithmeticError, ValueError) as error:
            why = why or f"{type(error).__name__}: {error}"
            continue
        outputs = {name: (tensor.array.dtype.name, len(tensor.lod)) for name, tensor in alone[0].items()}
        if fixed:
            rule = JoinRule(reason=f"input {fixed[0]!r} declares no batch dim")
        else:
            rule = _rule(run, proof, feeds, alone)
        return Findings(rule, warmed + len(feeds), outputs=outputs)
    if warmed:
        return Findings(JoinRule(reason=f"two requests of one and two entries could not be made: {why}"), warmed)
    return Findings(JoinRule(reason="the model could not be warmed up"), 0, why or "its inputs declare no dims")


def _of_example(signature: Signature, random: np.random.Generator, example: Example) -> Feed:
    return {spec.name: _filled(random, spec, **example[spec.name]) for spec in signature.inputs}


def _warm_up(signature: Signature, run: Run, random: np.random.Generator, recorded: list[Example]) -> int:
    """Run the recorded examples that still fit the model; returns how many ran."""
    warmed = 0
    for example in recorded:
        if set(example) == {spec.name for spec in signature.inputs}:
            # Clients may have sent shapes that this version of the model does not take.
            with suppress(OprackError, ArithmeticError, ValueError):
                run(_of_example(signature, random, example))
                warmed += 1
    return warmed


def _filled(random: np.random.Generator, spec: TensorSpec, shape: list[int], lod: Any = ()) -> Tensor:
    dtype = np.dtype(spec.dtype or "float32")
    if dtype.kind in "iub":
        array = random.integers(0, 2, shape).astype(dtype)  # small enough for any vocabulary
    else:
        array = random.standard_normal(shape).astype(dtype)
    return Tensor(array, [list(level) for level in lod])


def _feeds(
    signature: Signature, random: np.random.Generator, declared: list[Example], batches: list[tuple[int, ...]]
) -> Iterator[list[Feed]]:
    """Requests to try, one for each batch: the lengths of its entries, which count where an input has LoD.

    Open dims are those of the declared examples, else guessed.
    """
    shapes = [{name: given["shape"][1:] for name, given in example.items()} for example in declared]
    open_dims = any(-1 in (spec.shape or ())[1:] for spec in signature.inputs)
    guesses = SIZES if open_dims else (1,)
    for dims, guess in [*((shape, 1) for shape in shapes), *((None, guess) for guess in guesses)]:
        yield [_request(signature, random, lengths, dims, guess) for lengths in batches]


def _request(
    signature: Signature, random: np.random.Generator, lengths: tuple[int, ...], dims: dict[str, Any] | None, guess: int
) -> Feed:
    """A request with one entry for each length. dims: those after the first, by input; else `guess` for open ones."""
    feed = {}
    for spec in signature.inputs:
        shape = spec.shape or ()
        tail = dims[spec.name] if dims else [guess if d == -1 else d for d in shape[1:]]
        rows, lod = len(lengths), []
        if spec.lod_level:
            # every level above the innermost has one sequence of the level below
            upper = list(range(rows + 1))
            lod = [*([upper] * (spec.lod_level - 1)), [0, *itertools.accumulate(lengths)]]
            rows = sum(lengths)
        elif shape and shape[0] != -1:
            rows = shape[0]
        feed[spec.name] = _filled(random, spec, [rows, *tail] if shape else [], lod)
    return feed


def _rule(run: Run, proof: Proof, feeds: list[Feed], alone: list[dict[str, Tensor]]) -> JoinRule:
    kinds = {}
    for name in alone[0]:
        kind = _kind(name, feeds, alone)
        if kind is None:
            return JoinRule(reason=f"output {name!r} has neither sequences nor rows for the entries of a batch")
        kinds[name] = kind
    rule = JoinRule(kinds)
    for magnitudes in MAGNITUDES:
        scaled = [_times(feed, factor) for feed, factor in zip(feeds, magnitudes, strict=True)]
        reason = _differs(run, rule, scaled, alone if magnitudes == (1.0, 1.0) else None)
        if reason:
            return JoinRule(reason=reason)
    reason = proof({name: tensor.array.shape for name, tensor in feeds[0].items()})
    return JoinRule(reason=f"not proved: {reason}") if reason else rule


def _times(feed: Feed, factor: float) -> Feed:
    """The feed with floats of other sizes."""
    if factor == 1.0:
        return feed
    return {
        n: Tensor(t.array * t.array.dtype.type(factor), t.lod) if t.array.dtype.kind == "f" else t
        for n, t in feed.items()
    }


def _differs(run: Run, rule: JoinRule, feeds: list[Feed], alone: list[dict[str, Tensor]] | None) -> str:
    """What changes when requests run joined; "" when nothing does. alone: their results, where they ran before."""
    try:
        alone = alone or [run(feed) for feed in feeds]
        parts = joining.split(rule, feeds, run(joining.join(feeds)))
    except (OprackError, ArithmeticError, ValueError) as error:
        return f"a joined run failed: {str(error)[:200]}"
    for part, expected in zip(parts, alone, strict=True):
        for name, tensor in expected.items():
            if not _same(part[name], tensor):
                return f"output {name!r} of a request changes with what it is joined with"
    return ""


def _kind(name: str, feeds: list[Feed], alone: list[dict[str, Tensor]]) -> str | None:
    counts = [joining.entries(feed) for feed in feeds]
    tensors = [outputs[name] for outputs in alone]
    if all(t.lod and len(t.lod[0]) - 1 == n for t, n in zip(tensors, counts, strict=True)):
        return "lod"
    rows = [len(t.array) if t.array.ndim else -1 for t in tensors]
    if any(t.lod for t in tensors):
        return None
    if rows == counts:
        return "batch"
    return next((f"rows:{i}" for i in feeds[0] if rows == [len(feed[i].array) for feed in feeds]), None)


def _same(one: Tensor, other: Tensor) -> bool:
    a, b = one.array, other.array
    if one.lod != other.lod or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "iub":
        return bool((a == b).all())
    a, b = a.astype(np.float64), b.astype(np.float64)
    largest = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    return bool(np.allclose(a, b, rtol=0.0, atol=TOLERANCE * max(largest, 1e-30), equal_nan=True))
