"""Schedule: in which order the ranks of a pipeline take micro-batches forward and backward, and swap what they made.

The order is 1F1B, and with several stages on each rank its interleaved form (Narayanan et al., "Efficient Large-Scale
Language Model Training on GPU Clusters Using Megatron-LM", 2021, figure 4). Nothing here computes or sends.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from oprack.errors import InvalidArgumentError
from oprack.parallel.layouts.layout import balanced


class Action(NamedTuple):
    """A stage takes a micro-batch forward or backward.

    Attributes:
        backward: Whether it goes backward.
        stage: The stage.
        piece: The micro-batch.
    """

    backward: bool
    stage: int
    piece: int


class Message(NamedTuple):
    """What one stage hands another one: activations, or their gradients on the way back.

    Attributes:
        backward: Whether it is gradients.
        source: The stage that has it.
        target: The stage that takes it.
        piece: The micro-batch.
    """

    backward: bool
    source: int
    target: int
    piece: int


class Timed(NamedTuple):
    """When an action runs, in units of a forward of one stage.

    Attributes:
        action: The action.
        rank: Whose it is.
        start: When it begins.
        end: When it ends.
    """

    action: Action
    rank: int
    start: float
    end: float


class Schedule:
    """The actions of each rank, in order, and the messages between them.

    Stage s lies on rank s % ranks, so a rank of a pipeline with two stages each has a part of the first half of the net
    and one of the second.

    Args:
        ranks: Number of ranks.
        stages: Number of stages, a multiple of the ranks.
        pieces: Number of micro-batches.
        skips: (source, target) of stages that hand something on to a later one than the next.
        backward: Whether micro-batches go back as well.

    Attributes:
        actions: For each rank, what it does.
        timeline: When it would do so if a forward took 1, a backward 2, and messages nothing.

    Raises:
        InvalidArgumentError: The stages are no multiple of the ranks, or there is no micro-batch.
    """

    def __init__(
        self, ranks: int, stages: int, pieces: int, skips: Iterable[tuple[int, int]] = (), backward: bool = True
    ) -> None:
        if ranks < 1 or stages < 1 or stages % ranks or pieces < 1:
            raise InvalidArgumentError(
                f"{stages} stages and {pieces} micro-batches on {ranks} ranks; expected as many stages on each rank, "
                "and at least one micro-batch"
            )
        self.ranks, self.stages, self.pieces, self.backward = ranks, stages, pieces, backward
        self.routes = sorted({*itertools.pairwise(range(stages)), *skips})
        self.actions = [list(self._of_rank(r)) for r in range(ranks)]
        self.timeline = self._timed()
        self._steps: dict[int, list[Action | Message]] = {}

    def rank_of(self, stage: int) -> int:
        """The rank that has a stage."""
        return stage % self.ranks

    def _of_rank(self, rank: int) -> Iterator[Action]:
        """Some forward, then one forward and one backward in turns, then the rest backward."""
        ranks, chunks = self.ranks, self.stages // self.ranks
        forth = [Action(False, chunk * ranks + rank, i) for chunk, i in self._turns(range(chunks))]
        if not self.backward:
            yield from forth
            return
        back = [Action(True, chunk * ranks + rank, i) for chunk, i in self._turns(range(chunks)[::-1])]
        largest = max(map(len, self._groups()))
        ahead = ranks - rank - 1 if chunks == 1 else 2 * (ranks - rank - 1) + (chunks - 1) * largest
        ahead = min(ahead, len(forth))
        yield from forth[:ahead]
        for one in zip(forth[ahead:], back, strict=False):
            yield from one
        yield from back[len(forth) - ahead :]

    def _turns(self, chunks: range) -> Iterator[tuple[int, int]]:
        """(stage among those of a rank, micro-batch): some micro-batches through one stage, then through the next."""
        for group in self._groups():
            yield from itertools.product(chunks, group)

    def _groups(self) -> list[range]:
        """Micro-batches in groups of as many as there are ranks; where that leaves a rest, in somewhat larger ones."""
        count = max(1, self.pieces // self.ranks)
        ends = [balanced(self.pieces, count, k) for k in range(count)]
        return [range(start, stop) for start, stop in ends]

    def messages_from(self, action: Action) -> list[Message]:
        """What others get of what an action makes."""
        s, i = action.stage, action.piece
        if action.backward:
            return [Message(True, s, a, i) for a, b in self.routes if b == s]
        return [Message(False, s, b, i) for a, b in self.routes if a == s]

    def messages_for(self, action: Action) -> list[Message]:
        """What an action needs of others."""
        s, i = action.stage, action.piece
        if action.backward:
            return [Message(True, b, s, i) for a, b in self.routes if a == s]
        return [Message(False, a, s, i) for a, b in self.routes if b == s]

    def _timed(self) -> list[Timed]:
        """Each rank does what is next for it as soon as it has what that needs."""
        ended: dict[Action, float] = {}
        waiting = [collections.deque(actions) for actions in self.actions]
        free, found, goes_on = [0.0] * self.ranks, list[Timed](), True
        while goes_on:
            goes_on = False
            for r, actions in enumerate(waiting):
                while actions and all(n in ended for n in self._needs(actions[0])):
                    action = actions.popleft()
                    start = max([free[r], *(ended[n] for n in self._needs(action))])
                    end = ended[action] = free[r] = start + (2.0 if action.backward else 1.0)
                    found.append(Timed(action, r, start, end))
                    goes_on = True
        assert not any(waiting), "ranks would wait for each other"
        return sorted(found, key=lambda t: (t.start, t.rank))

    def _needs(self, action: Action) -> list[Action]:
        """What has to be done before an action."""
        needs = [Action(m.backward, m.source, m.piece) for m in self.messages_for(action)]
        return [*needs, action._replace(backward=False)] if action.backward else needs

    @property
    def bubble(self) -> float:
        """How long ranks wait, of the time that they compute: (ranks - 1) / (stages of a rank * micro-batches)."""
        busy = sum(t.end - t.start for t in self.timeline) / self.ranks
        return (max(t.end for t in self.timeline) - busy) / busy

    def steps(self, rank: int) -> list[Action | Message]:
        """What a rank does, in order; it sends what comes from its stages and receives what comes from others.

        All ranks have their messages in one order, so none waits for a message while the other waits for another one,
        even where an engine lets a message wait for its receiver. A message comes when it would be ready.

        Args:
            rank: The rank.

        Returns:
            Actions, and messages between it and another rank.
        """
        if rank not in self._steps:
            self._steps[rank] = self._ordered(rank)
        return self._steps[rank]

    def _ordered(self, rank: int) -> list[Action | Message]:
        events: list[tuple[float, int, int, Action | Message]] = []
        for number, t in enumerate(self.timeline):
            if t.rank == rank:
                events.append((t.start, 1, number, t.action))
            for m in self.messages_from(t.action):
                ends = self.rank_of(m.source), self.rank_of(m.target)
                if ends[0] != ends[1] and rank in ends:
                    events.append((t.end, 0, number, m))
        events.sort(key=lambda e: e[:3])
        return [e[3] for e in events]
