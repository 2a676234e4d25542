"""Pipeline: a net cut into stages, each on ranks of its own, through which a batch goes in pieces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.autograd.walk import backward
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import CPU, meta_of_value
from oprack.errors import CollectiveError, InvalidArgumentError, NotFoundError
from oprack.interpreter.modes import no_grad
from oprack.parallel.communicator import Communicator
from oprack.parallel.eager.global_tensor import global_tensor
from oprack.parallel.layouts.layout import Placement, layout_of
from oprack.parallel.training.between_stages import Mail, handed_on, micro_batches, tensors_in
from oprack.parallel.training.data_parallel import DataParallel
from oprack.parallel.training.modules import clip_by, settled
from oprack.parallel.training.schedule import Action, Message, Schedule
from oprack.parallel.world import use_world, world
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.nn.module import Module


class Pipeline:
    """Trains a net whose stages lie on different ranks, by the schedule 1F1B.

    A batch is cut into micro-batches. Each rank passes a few of them on, then takes one forward and one backward in
    turns, so that it holds the activations of no more micro-batches than there are stages after it and itself.
    Gradients are those of the whole batch. Where there are more stages than ranks along the pipeline, each rank has
    several, one after the other in turns: that is interleaved 1F1B, whose ranks wait less and send more.

    A stage gets what the stage before it gave: a tensor as its argument, a tuple as its arguments, a dict as its
    keywords. Tensors may have any shapes and dtypes, LoD, and layouts on the ranks of a stage.

    Args:
        stages: For each stage, a function without arguments that makes its module, called on the ranks of the stage.
            There `parallel.world()` is these ranks, and `parallel.placement()` the grid of them.
        micro_batches: Pieces of a batch; many of them, or stages wait for each other.
        communicator: The ranks; default: all. The first ones have the first stage, and so on, each as many.
        placement: A grid of ranks instead, one axis of which is the pipeline; a stage has the grid of its other axes.
        axis: The name of that axis.
        skips: Name -> (stage, later stage): what the first gives under this name in a dict goes to the other one as a
            keyword, and not to the next.
        tied: For each weight that several stages share, stage -> its path in the stage's module. Its value is that of
            the first of these stages, and its gradient the sum of all.

    Attributes:
        stages: Which stages this rank has, in order.
        modules: Their modules.
        stage: The first of the stages.
        module: Its module.
        ranks: The communicator of the ranks that have the same stages.
        placement: The grid of these ranks.
        schedule: The order in which all ranks work.
        in_flight: The most micro-batches whose activations this rank held at a time, those of each stage counted.

    Raises:
        InvalidArgumentError: Ranks and stages do not fit, there is no micro-batch, or a skip leads nowhere.
        NotFoundError: A stage has no weight that is said to be tied.
        CollectiveError: Tied weights differ in shape, dtype or layout.
    """

    def __init__(
        self,
        stages: Sequence[Callable[[], Module | DataParallel]],
        micro_batches: int,
        communicator: Communicator | None = None,
        *,
        placement: Placement | None = None,
        axis: str = "pipeline",
        skips: Mapping[str, tuple[int, int]] | None = None,
        tied: Iterable[Mapping[int, str]] = (),
    ) -> None:
        count, self.micro_batches, self.skips = len(stages), micro_batches, dict(skips or {})
        grid = placement or _grid(communicator or world(), count, micro_batches, axis)
        if axis not in grid.axes:
            raise InvalidArgumentError(
                f"Pipeline: axis {axis!r} of {grid!r}; expected axis= to be one of {', '.join(grid.axes)}"
            )
        for name, (source, target) in self.skips.items():
            if not 0 <= source < target < count:
                raise InvalidArgumentError(
                    f"Pipeline: skip {name!r} leads from stage {source} to stage {target} of {count}; expected a later "
                    "one"
                )
        at = grid.axes.index(axis)
        number = grid.coords[at]
        self._routes = {pair: [n for n, p in self.skips.items() if p == pair] for pair in self.skips.values()}
        self.schedule = Schedule(grid.shape[at], count, micro_batches, self._routes)
        self._forward: Schedule | None = None
        self.placement = grid.without(axis)
        self.ranks = self.placement.world
        self._line = grid.group(at)
        self.stages = [s for s in range(count) if self.schedule.rank_of(s) == number]
        self.count, self.in_flight = count, 0
        with use_world(self.ranks):
            self.modules: list[Any] = [stages[s]() for s in self.stages]
        self.stage, self.module = self.stages[0], self.modules[0]
        place = next((p.place for p in self.parameters()), CPU)
        self._mail = Mail(self._line, self.placement, place)
        self._tied = [_Tied(self, dict(one)) for one in tied]

    def parameters(self) -> list[Tensor]:
        """The parameters of this rank's stages, for its optimizer; what two of them share is one of them."""
        return list({id(p): p for m in self.modules for p in m.parameters()}.values())

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """(path, parameter) of this rank's stages; a path begins with the number of the stage, as "2.weight"."""
        pairs = zip(self.stages, self.modules, strict=True)
        found = [(f"{s}.{path}", p) for s, m in pairs for path, p in m.named_parameters()]
        return list({id(p): (path, p) for path, p in reversed(found)}.values())[::-1]

    @property
    def is_first(self) -> bool:
        """Whether this rank has the first stage, which takes the batch."""
        return self.stages[0] == 0

    @property
    def is_last(self) -> bool:
        """Whether this rank has the last stage, which computes the loss."""
        return self.stages[-1] == self.count - 1

    def train(self, batch: Any, targets: Any, loss: Callable[[Any, Any], Tensor]) -> float:
        """Forward and backward of a batch; collective. Gradients are added to those of the parameters.

        Args:
            batch: The inputs of the first stage: a tensor, or tensors in a tuple or a dict. Others do not read them.
            targets: What the loss compares the outputs with, likewise; only the last stage reads them.
            loss: The mean loss of what the last stage gives and of targets.

        Returns:
            The mean of the losses of the micro-batches, on all ranks.

        Raises:
            InvalidArgumentError: Rows do not make equal micro-batches, or a stage gives what can't be handed on.
        """
        run = _Run(self, self.schedule, batch, targets, loss)
        copies = [m for m in self.modules if isinstance(m, DataParallel)]
        with use_world(self.ranks):
            for one in self._tied:
                one.set_aside()
            with ExitStack() as inside:
                for m in copies:
                    inside.enter_context(m.no_sync())
                run.go()
            for m in copies:
                m.average_gradients()
            for one in self._tied:
                one.add_up()
            return self._mean(run)

    def evaluate(self, batch: Any, targets: Any, loss: Callable[[Any, Any], Tensor]) -> float:
        """The loss of a batch without gradients; collective. See `train`."""
        if self._forward is None:
            ranks = self.schedule.ranks
            self._forward = Schedule(ranks, self.count, self.micro_batches, self._routes, backward=False)
        run = _Run(self, self._forward, batch, targets, loss)
        with use_world(self.ranks), no_grad():
            run.go()
            return self._mean(run)

    def clip_grad_norm(self, max_norm: float) -> float:
        """Scale gradients so that the norm of those of all stages together is at most `max_norm`; collective.

        Args:
            max_norm: The largest norm, above 0.

        Returns:
            The norm before. A weight that stages share counts once.
        """
        copies = {id(p) for one in self._tied for p in one.copies}

        def total(parameters: Sequence[Tensor], squares: np.ndarray) -> float:
            own = sum(float(s) for p, s in zip(parameters, squares, strict=True) if id(p) not in copies)
            return float(self._line.all_reduce(np.array([own], np.float64))[0])

        with use_world(self.ranks):
            return clip_by(self.parameters(), max_norm, total)

    def _mean(self, run: _Run) -> float:
        total = np.array([sum(float(y.item()) for y in run.losses) / self.micro_batches], np.float64)
        return float(self._line.broadcast(total, self._line.size - 1)[0])


def _grid(ranks: Communicator, stages: int, pieces: int, axis: str) -> Placement:
    """The grid of a pipeline that is given none: as many ranks for each stage, or several stages for each rank."""
    line = min(stages, ranks.size)
    if not stages or stages % line or ranks.size % line or pieces < 1:
        raise InvalidArgumentError(
            f"Pipeline: {stages} stages and {pieces} micro-batches on {ranks.size} ranks; expected as many "
            "ranks for each stage or as many stages for each rank, and at least one micro-batch"
        )
    grids: dict[Any, Placement] = ranks.__dict__.setdefault("pipelines", {})
    key = line, axis
    if key not in grids:
        kind = ranks.place_kind or "cpu"
        grids[key] = Placement(ranks, kind, (line, ranks.size // line), (axis, "copies"))
    return grids[key]


class _Run:
    """One batch on its way through this rank's stages."""

    def __init__(self, pipeline: Pipeline, schedule: Schedule, batch: Any, targets: Any, loss: Callable[..., Tensor]):
        self.p, self.schedule, self.loss = pipeline, schedule, loss
        pieces = pipeline.micro_batches
        # Cut on all ranks, so that all of them refuse what does not fit.
        self.batch, self.targets = micro_batches(batch, pieces), micro_batches(targets, pieces)
        _require_as_many(batch, targets)
        self.losses: list[Tensor] = []
        # What waits here: for a stage to take it, or to be sent. What a stage took and gave, until it goes back.
        self.here: dict[Message, Any] = {}
        self.held: dict[tuple[int, int], tuple[dict[int, Any], dict[int, Any]]] = {}

    def go(self) -> None:
        """Do what the schedule says."""
        p, line = self.p, self.p._line
        for step in self.schedule.steps(line.rank):
            if isinstance(step, Action):
                (self._backward if step.backward else self._forward)(step)
                continue
            way = step[:3]
            target = self.schedule.rank_of(step.target)
            if target != line.rank:
                p._mail.send(way, target, self.here.pop(step), f"stage {step.source}")
            else:
                self.here[step] = p._mail.receive(way, self.schedule.rank_of(step.source))

    # One micro-batch --------------------------------------------------------------------------------------------------
    def _forward(self, action: Action) -> None:
        p, s, i = self.p, action.stage, action.piece
        given = {m.source: self.here.pop(m) for m in self.schedule.messages_for(action)}
        value = self.batch[i] if s == 0 else given[s - 1]
        names: dict[str, Any] = {}
        for source, value_of in given.items():
            skipped = p._routes.get((source, s), ())
            if not skipped:
                continue
            if source == s - 1:
                value, value_of = value_of
            names |= value_of
        module = p.modules[p.stages.index(s)]
        if isinstance(value, dict):
            made = module(**value, **names)
        else:
            made = module(*value, **names) if isinstance(value, tuple | list) else module(value, **names)
        if s == p.count - 1:
            made = self.loss(made, self.targets[i])
            self.losses.append(made.detach())
            parts = {s: made * (1.0 / p.micro_batches)}
        else:
            parts = self._parts(s, made)
            for m in self.schedule.messages_from(action):
                self.here[m] = self._outgoing(m, parts[m.target])
        if self.schedule.backward:
            self.held[s, i] = given, parts
            p.in_flight = max(p.in_flight, len(self.held))

    def _parts(self, s: int, made: Any) -> dict[int, Any]:
        """What each later stage gets of what a stage gave."""
        p = self.p
        mine = {pair: names for pair, names in p._routes.items() if pair[0] == s}
        chosen = {n for names in mine.values() for n in names}
        if not chosen:
            return {s + 1: made}
        if not isinstance(made, dict) or not chosen <= set(made):
            got = sorted(made) if isinstance(made, dict) else type(made).__name__
            raise InvalidArgumentError(
                f"Pipeline: stage {s} gives {got}; expected a dict with {', '.join(sorted(chosen))}, which its skips "
                "name, and what the next stage takes"
            )
        found: dict[int, Any] = {target: {n: made[n] for n in names} for (_, target), names in mine.items()}
        rest = {k: v for k, v in made.items() if k not in chosen}
        found[s + 1] = (rest, found[s + 1]) if s + 1 in found else rest
        return found

    def _outgoing(self, m: Message, value: Any) -> Any:
        """What is handed on now: to another rank by a message, to this one as it would arrive there."""
        same = self.schedule.rank_of(m.source) == self.schedule.rank_of(m.target)
        return handed_on(value, f"stage {m.source}") if same else value

    def _backward(self, action: Action) -> None:
        s, i = action.stage, action.piece
        given, parts = self.held.pop((s, i))
        outputs, gradients = [], []
        if s == self.p.count - 1:
            if parts[s]._node is not None:
                outputs, gradients = [parts[s]], [None]
        for m in self.schedule.messages_for(action):
            arrived = self.here.pop(m)
            for y, g in zip(tensors_in(parts[m.source]), arrived, strict=True):
                if g is not None and y._node is not None:
                    outputs.append(y)
                    gradients.append(g.detach())
        if outputs:
            backward(outputs, gradients)
        for m in self.schedule.messages_from(action):
            self.here[m] = self._outgoing(m, [_gradient(x) for x in tensors_in(given[m.target])])


def _gradient(x: Tensor) -> Tensor | None:
    found = x._grad
    if found is not None and found.is_sparse:
        value = found._value.to_dense()
        found = new_tensor(value, meta_of_value(value, x.place))
    return None if found is None else found.detach()


def _require_as_many(batch: Any, targets: Any) -> None:
    """Raise InvalidArgumentError where targets are not as many as rows; LoD says what else belongs together."""
    counts = [x.shape[0] for x in (*tensors_in(batch), *tensors_in(targets)) if not x._meta.lod_level]
    if len(set(counts)) > 1 and not any(x._meta.lod_level for x in tensors_in(batch)):
        rows, others = next(tensors_in(batch)), [list(x.shape) for x in tensors_in(targets)]
        raise InvalidArgumentError(
            f"Pipeline: {rows.shape[0]} rows, targets {', '.join(map(str, others))}; expected as many in all "
            "tensors of a batch"
        )


class _Tied:
    """A weight that several stages share: copies whose gradients are added up.

    Args:
        pipeline: The pipeline.
        paths: Stage -> path of the weight in its module.

    Attributes:
        copies: Those of this rank, but the first of all.
    """

    def __init__(self, pipeline: Pipeline, paths: Mapping[int, str]) -> None:
        self._own: list[Tensor] = []
        self._before: list[Any] = []
        for s, module in zip(pipeline.stages, pipeline.modules, strict=True):
            if s in paths:
                self._own.append(_parameter(module, paths[s], s))
        line, rank_of = pipeline._line, pipeline.schedule.rank_of
        owners = {rank_of(s) for s in paths}
        inside = line.rank in owners
        facts = [_described(p) for p in self._own]
        found = [f for rank in line.gather_facts(facts) for f in rank]
        if not found or any(f != found[0] for f in found):
            said = "; ".join(dict.fromkeys(map(str, found)))
            raise CollectiveError(f"Pipeline: tied weights {dict(paths)} are {said}; expected the same in all stages")
        first = rank_of(min(paths))
        key = (line.rank - first) % line.size
        name = f"tied {'.'.join(map(str, sorted(paths)))}"
        ranks = line.split(int(inside), key, name, len(owners) if inside else line.size - len(owners))
        self._ranks = ranks if inside else None
        self.copies = self._own[1:] if line.rank == first else self._own
        for p in self._own:
            p._replace(ranks.broadcast(self._own[0]._value), p._meta.local.without_grad, "Pipeline")

    def set_aside(self) -> None:
        """Keep the gradients of earlier batches, which are sums already; collective for global weights."""
        self._before = [None if p._grad is None else _whole_gradient(p) for p in self._own]
        for p in self._own:
            p._grad = None

    def add_up(self) -> None:
        """Add the gradients of all copies to what each had before; collective."""
        if self._ranks is None:
            return
        total = functools.reduce(lambda a, b: a + b, [_whole_gradient(p) for p in self._own])
        total = self._ranks.all_reduce(total)
        for p, before in zip(self._own, self._before, strict=True):
            value = total.copy() if before is None else before + total
            layout, meta = layout_of(p._meta), meta_of_value(value, p.place)
            p._grad = new_tensor(value, meta) if layout is None else global_tensor(value, layout.meta(meta), p.shape)
        self._before = []


def _parameter(module: Any, path: str, stage: int) -> Tensor:
    found: Tensor | None = dict(module.named_parameters()).get(path)
    if found is None:
        paths = ", ".join(n for n, _ in module.named_parameters())
        raise NotFoundError(f"Pipeline: stage {stage} has no weight {path!r} to tie; its weights are {paths}")
    return found


def _described(p: Tensor) -> str:
    layout = layout_of(p._meta)
    return f"{p.dtype}{list(p.shape)}" + ("" if layout is None else f" in {list(layout.sbps)}")


def _whole_gradient(p: Tensor) -> Any:
    """The gradient of a parameter in its layout, as an array of its own."""
    if p.grad is None:  # which asks for an array of its own
        return np.zeros_like(p._value)
    value = settled(p)
    return value.to_dense() if isinstance(value, SelectedRows) else value
