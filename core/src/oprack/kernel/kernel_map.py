"""OpKernelMap: the kernels of one op, and which of them a call gets; KernelRules: which of them a run may choose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from oprack.errors import DefinitionError, DuplicateKernelError, KernelNotFoundError
from oprack.kernel.decorator import KernelSpec
from oprack.kernel.predicates import KernelQuery
from oprack.kernel.signature import CONTAINERS, KernelSignature, bind_signature
from oprack.kernel.ties import settle_tie, tie_text
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.infer import OpKernelType
from oprack.op.proto import OpProto
from oprack.python.logs import get_logger
from oprack.python.records import dataclass

_LOG = get_logger(__name__)


def switched_on(variable: str) -> bool:
    """Whether an environment variable such as OPRACK_REFERENCE is set to something else than 0, off, no or false."""
    return os.environ.get(variable, "0").strip().lower() not in ("", "0", "off", "no", "false")


class KernelRules:
    """Which kernels a run may choose among, set once for an executor.

    Rules are compared by identity, since every look-up of a plan has them in its key.

    Args:
        excluded: Libraries whose kernels may not run.
        by_attr: Libraries whose kernels run only where an attribute of the op asks for them (Fluid's use_mkldnn,
            use_cudnn). Those of all others run wherever they are the best, whatever the attribute says, as in Fluid
            with the flag for the library set.
        deterministic: Whether to leave out kernels that can't promise the same bits on every run.
        plain: Whether kernels of libraries run only where no other fits, as inside `oprack.reference()`.
    """

    __slots__ = ("by_attr", "deterministic", "excluded", "plain")

    def __init__(
        self,
        excluded: Iterable[str] = (),
        by_attr: Iterable[str] = (),
        *,
        deterministic: bool = False,
        plain: bool = False,
    ) -> None:
        self.excluded, self.by_attr = frozenset(excluded), frozenset(by_attr)
        self.deterministic, self.plain = bool(deterministic), plain

    def libraries(self, switches: Mapping[str, str], attrs: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
        """Which library an op asks for, and which ones may not run for it.

        Args:
            switches: For each library, the attribute that switches it.
            attrs: The op's attributes.

        Returns:
            (the library that the op asks for, or "plain"; the libraries that may not run for it).
        """
        if not self.by_attr:
            return "plain", self.excluded
        requested = [n for n in sorted(self.by_attr - self.excluded) if attrs.get(switches.get(n, ""))]
        return (requested[0] if requested else "plain"), self.excluded | (self.by_attr - set(requested))

    def __repr__(self) -> str:
        return (
            f"KernelRules(excluded={sorted(self.excluded)}, by_attr={sorted(self.by_attr)}, "
            f"deterministic={self.deterministic}, plain={self.plain})"
        )


ANY_KERNEL = KernelRules()
"""Every kernel may run."""
DETERMINISTIC_KERNELS = KernelRules(deterministic=True)
"""Those that give the same bits on every run."""
PLAIN_KERNELS = KernelRules(plain=True)
"""Those of no library, where one fits."""


_size_limits_off = 0  # how many `size_limits_ignored` blocks are active; they may be nested


@contextmanager
def size_limits_ignored() -> Iterator[None]:
    """Within a with block, choose kernels as if none declared `min_numel`, in all threads; meant for tests.

    Programs that were prepared before keep their choices. Where a kernel itself compares sizes, its library says how to
    switch that off: see `without_size_limits` in the hook oprack_libraries.
    """
    global _size_limits_off
    _size_limits_off += 1
    try:
        yield
    finally:
        _size_limits_off -= 1


Rank = tuple[int, int, bool, int]
"""What `_rank` compares: negative priority, absent containers, whether nothing restricts the kernel, and size."""


@dataclass(frozen=True)
class Candidate:
    """A kernel, judged for one call.

    Attributes:
        spec: The kernel.
        signature: How its parameters are bound.
        reason: Why it does not fit; "" when it does.
        rank: Its preference among the kernels that fit; the lowest rank wins.
        next: The kernel that takes over when this one declines, or when the first input has fewer than `spec.min_numel`
            elements; None when there is none.
    """

    spec: KernelSpec
    signature: KernelSignature
    reason: str = ""
    rank: Rank = (0, 0, False, 0)
    next: Candidate | None = None

    def chain(self) -> Iterator[Candidate]:
        """This kernel and those that take over, in order."""
        current: Candidate | None = self
        while current is not None:
            yield current
            current = current.next


class OpKernelMap:
    """The kernels of one op type, from its own pack and from any other.

    Args:
        proto: The op.
        owner: Distribution that defines the op; its kernels win ties against those of others.
        on_tie: Called with a message and the other owners when a tie is settled that the user has not decided.
        preferred: Distributions whose kernels win all ties, the most preferred one first.
    """

    def __init__(
        self,
        proto: OpProto,
        owner: str = "",
        on_tie: Callable[[str, tuple[str, ...]], None] | None = None,
        preferred: Iterable[str] = (),
    ) -> None:
        self.proto, self.owner, self._on_tie, self._preferred = proto, owner, on_tie, tuple(preferred)
        self._kernels: list[tuple[KernelSpec, KernelSignature]] = []
        self._logged: set[str] = set()  # libraries without a kernel that fits, each of which is logged once

    def add(self, spec: KernelSpec, owner: str) -> None:
        """Add a kernel.

        Args:
            spec: The kernel.
            owner: The distribution that brings it.

        Raises:
            DefinitionError: Its parameters or its predicate do not match the op.
            DuplicateKernelError: It ties with another kernel of its pack in every call that both fit (same place,
                dtype, library, containers and priority, and the same predicate or none). `choose` settles ties between
                packs.
        """
        if spec.op_type != self.proto.type:
            raise DefinitionError(f"kernel {spec.name} is of op {spec.op_type}, not of {self.proto.type}")
        spec = replace(spec, owner=owner)
        signature = bind_signature(spec.function, self.proto)
        if spec.view and not signature.inputs:
            raise DefinitionError(f"kernel {spec.name} ({spec.where}): view=True, but no parameter to be a view of")
        self._check_predicate(spec)
        for other, _ in self._kernels:
            if other.when is spec.when and replace(other, owner=owner) == spec:
                return  # The same declaration, registered in two ways, as by a manifest and by a hook.
        others = [o for o in self.ties(spec, signature) if o.owner == owner or not self.owner]
        if others:
            raise DuplicateKernelError(tie_text(self.proto.type, self.owner, [others[0], spec]))
        self._kernels.append((spec, signature))

    def ties(self, spec: KernelSpec, signature: KernelSignature | None = None) -> list[KernelSpec]:
        """Kernels that tie with `spec` in every call that both fit.

        Args:
            spec: The kernel.
            signature: Its signature, if it is bound already.

        Returns:
            The kernels.
        """
        signature = signature or bind_signature(spec.function, self.proto)
        return [
            other
            for other, other_signature in self._kernels
            if other.always_ties(spec) and _containers(other_signature) == _containers(signature)
        ]

    def require_untied(self, spec: KernelSpec, owner: str) -> None:
        """Refuse a kernel that ties with another one, which might then be chosen in its place.

        Args:
            spec: The kernel.
            owner: The distribution that brings it.

        Raises:
            DuplicateKernelError: Another function ties with it.
        """
        others = [other for other in self.ties(spec) if other.function is not spec.function]
        if others:
            raise DuplicateKernelError(tie_text(self.proto.type, self.owner, [*others, replace(spec, owner=owner)]))

    def _check_predicate(self, spec: KernelSpec) -> None:
        if spec.when is None:
            return
        for member, name in sorted(spec.when.names):
            known = self.proto.inputs if member == "input" else {**self.proto.attrs, **dict.fromkeys(COMMON_ATTRS)}
            if name not in known:
                raise DefinitionError(
                    f"kernel {spec.name} ({spec.where}) of op {spec.op_type}: its predicate `{spec.when.text}` looks "
                    f"at {member} {name!r}, which the op does not have; expected one of "
                    f"{', '.join(self.proto.inputs if member == 'input' else self.proto.attrs) or 'none'}"
                )

    def __iter__(self) -> Iterator[KernelSpec]:
        return iter([spec for spec, _ in self._kernels])

    def __len__(self) -> int:
        return len(self._kernels)

    @property
    def viewed(self) -> list[str]:
        """For each kernel whose results may be views, the input slot that they are views of."""
        return [signature.inputs[0][0] for spec, signature in self._kernels if spec.view]

    def candidates(
        self, expected: OpKernelType, query: KernelQuery, excluded: Iterable[str] = (), deterministic: bool = False
    ) -> list[Candidate]:
        """Judge every kernel for one call.

        Args:
            expected: Place, dtype and library that are asked for.
            query: The properties of the call that predicates test.
            excluded: Libraries that may not be used in this run.
            deterministic: Whether to leave out kernels that can't promise the same bits on every run.

        Returns:
            All kernels, best first; those that do not fit come last, with the reason.
        """
        excluded = set(excluded)
        candidates = []
        for spec, signature in self._kernels:
            reason = _reason(spec, signature, expected, query, excluded, deterministic)
            containers = _containers(signature)
            absent = sum(slot not in query.kinds for slot, _ in containers)
            candidates.append(Candidate(spec, signature, reason, _rank(spec, len(containers), absent)))
        return sorted(candidates, key=lambda c: (c.reason != "", *c.rank))

    def choose(
        self, expected: OpKernelType, query: KernelQuery, excluded: Iterable[str] = (), rules: KernelRules = ANY_KERNEL
    ) -> Candidate:
        """Choose the best of the kernels that fit.

        Where none of the library that is asked for fits, one of another library is chosen, and the log says so once.

        Args:
            expected: Place, dtype and library that are asked for.
            query: The properties of the call that predicates test.
            excluded: Libraries that may not be used in this run.
            rules: Those of the run, of which `libraries` gave what is asked for and what is excluded.

        Returns:
            The best kernel, linked to those that take over when it declines.

        Raises:
            KernelNotFoundError: No kernel fits. The message lists all candidates with their reasons.
            DuplicateKernelError: Several kernels of the op's own pack fit equally well.
        """
        excluded = frozenset(excluded)
        expected = replace(expected, library="plain") if rules.plain else expected
        candidates = self.candidates(expected, query, excluded, rules.deterministic)
        fitting = [c for c in candidates if not c.reason]
        if rules.plain:  # those of the op's own pack before those of others
            plain = [c for c in fitting if c.spec.library == "plain"]
            fitting = [c for c in plain if c.spec.owner == self.owner] or plain or fitting
        others: list[Candidate] = []  # of any library: they take over where the one that is asked for declines
        if expected.library != "plain":
            wider = replace(expected, library="plain")
            others = [c for c in self.candidates(wider, query, excluded, rules.deterministic) if not c.reason]
        if not fitting and others:
            self._log_missing(expected, query, others[0].spec)
            fitting, others = others, []
        if not fitting:
            raise KernelNotFoundError(self._no_kernel(expected, query, candidates))
        fitting_specs = {id(c.spec) for c in fitting}
        rest = [c for c in others if id(c.spec) not in fitting_specs]
        if _size_limits_off:
            fitting, rest = ([replace(c, spec=replace(c.spec, min_numel=0)) for c in cs] for cs in (fitting, rest))
        return self._linked(fitting, rest)

    def _log_missing(self, expected: OpKernelType, query: KernelQuery, substitute: KernelSpec) -> None:
        """Log, once for each library, that a kernel of another one substitutes for its missing kernel."""
        if expected.library in self._logged:
            return
        self._logged.add(expected.library)
        text = "op %s: library %s is asked for, but has no kernel for (%s) with %s; %s of library %s runs"
        wider, inputs = replace(expected, library="plain"), _inputs_text(query)
        _LOG.info(text, self.proto.type, expected.library, wider, inputs, substitute.name, substitute.library)

    def _no_kernel(self, expected: OpKernelType, query: KernelQuery, candidates: Iterable[Candidate]) -> str:
        """The error message, which lists all candidates with the reasons why they do not fit."""
        lines = [
            f"  {c.spec.name} of {c.spec.owner} [{c.spec.place}, {c.spec.library}, "
            f"{', '.join(sorted(c.spec.dtypes))}]: {c.reason}"
            for c in candidates
        ]
        return (
            f"op {self.proto.type}: no kernel for ({expected}) with {_inputs_text(query)}.\n"
            + ("Candidates:\n" + "\n".join(lines) if lines else "No pack brings a kernel for this place.")
            + "\nCast the inputs to a dtype above, run at another place, or install a pack with such a kernel."
        )

    def _linked(self, fitting: list[Candidate], rest: list[Candidate]) -> Candidate:
        """Link the best kernel to those that take over from it.

        Args:
            fitting: Kernels that fit, best first.
            rest: Kernels that fit as well and come after all of these, because they are of other libraries.
        """
        best = fitting[0]
        kinds = _containers(best.signature)
        tied = [c for c in fitting if (c.rank, _containers(c.signature)) == (best.rank, kinds)]
        if len(tied) > 1:
            spec = settle_tie(self.proto.type, self.owner, [c.spec for c in tied], self._on_tie, self._preferred)
            best = next(c for c in tied if c.spec is spec)
        others = [c for c in fitting if all(c is not t for t in tied)]
        if not best.spec.may_decline:
            others = [c for c in others if c.spec.min_numel < best.spec.min_numel]
        if not others and best.spec.may_decline:
            others, rest = rest, []
        return replace(best, next=self._linked(others, rest)) if others else best


def _containers(signature: KernelSignature) -> tuple[tuple[str, str], ...]:
    """(slot, container) of the inputs for which a kernel requires a container.

    LoDTensor is none: a kernel that takes it and one that takes a bare array fit the same variables.
    """
    return tuple(sorted((s, c) for s, _, c in signature.inputs if c not in ("", "LoDTensor")))


def _rank(spec: KernelSpec, containers: int, absent: int) -> Rank:
    """Rank a kernel among those that fit; the lowest rank wins.

    Kernels are compared by priority, then by specificity (one with a predicate, or with a container for an input that
    is present, comes before one with neither), then by `min_numel`.

    Args:
        spec: The kernel.
        containers: For how many inputs it requires a container.
        absent: How many of these inputs are absent from this call, so that their containers decide nothing.
    """
    return -spec.priority, absent, spec.when is None and containers == absent, -spec.min_numel


def _inputs_text(query: KernelQuery) -> str:
    parts = [f"{s}: {query.kinds[s]} {query.dtypes.get(s, '')}".strip() for s in query.kinds]
    return ", ".join(parts) or "no inputs"


def _reason(
    spec: KernelSpec,
    signature: KernelSignature,
    expected: OpKernelType,
    query: KernelQuery,
    excluded: set[str],
    deterministic: bool,
) -> str:
    """Why a kernel does not fit a call; "" when it does."""
    if spec.place != expected.place:
        return f"runs at {spec.place}, not at {expected.place}"
    if expected.library not in ("plain", spec.library):
        return f"library is {spec.library}, but {expected.library} is asked for"
    if spec.library in excluded:
        return f"library {spec.library} is switched off"
    if deterministic and not spec.deterministic:
        return "can't promise the same bits on every run, which deterministic=True asks for"
    if expected.dtype not in spec.dtypes:
        return f"dtype {expected.dtype} is not among {', '.join(sorted(spec.dtypes))}"
    for slot, _, container in signature.inputs:
        kind = query.kinds.get(slot)
        if kind is None:
            continue
        parameter_kind = container or "LoDTensor"
        if kind not in CONTAINERS[parameter_kind]:
            return f"{slot} is a {kind}, but this kernel takes a {parameter_kind}"
    if spec.when is not None and not spec.when.test(query):
        return f"needs {spec.when.text}"
    return ""
