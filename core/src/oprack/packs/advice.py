"""What errors say of packs, and of what no pack brings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from oprack.errors import NotFoundError, did_you_mean
from oprack.names.tables import home, homes, names, paddle_ops, why_missing
from oprack.packs.installed.entry_points import BUILTIN, HERE, FoundPack

if TYPE_CHECKING:
    from oprack.op.vocabulary import Role
    from oprack.packs.choice import Settlement
    from oprack.packs.pack import Pack

# Packs: left out, broken, unknown, in conflict -----------------------------------------------------------------------
ALL_PACKS = '`pip install "oprack[cpu]"` everything for the CPU'
_EVERY_PACK = ALL_PACKS.replace(" everything", " brings everything")
NO_PACK = f"no op pack is installed, so there is no op to run: {_EVERY_PACK}"
UNBLOCKABLE = (
    f"the core's own pack {BUILTIN.name!r} can't be blocked: programs need its ops feed and fetch; remove it from "
    "OPRACK_BLOCK or the list of blocked packs"
)


def unknown_pack(where: str, name: str, found: Iterable[FoundPack]) -> str:
    installed = sorted({f.name for f in found})
    near = did_you_mean(name, installed)
    return f"{where}: no installed pack is named {name!r}{near}; installed: {', '.join(installed)}"


def require_known(where: str, given: Iterable[str], packs: Iterable[Pack]) -> None:
    """Check that each name is one of a pack or a distribution; raises NotFoundError."""
    found = [p.found for p in packs]
    known = {name for f in found for name in f.names}
    for name in given:
        if name not in known:
            raise NotFoundError(unknown_pack(where, name, found))


def _label(pack: Pack) -> str:
    return f"{pack.found.name} ({pack.owner} {pack.found.version})".replace(" )", ")")


def broken(pack: Pack) -> str:
    return (
        f"pack {_label(pack)} is broken and left out: {type(pack.exception).__name__}: {pack.exception}\n"
        "Run `oprack doctor` for the whole reason."
    )


def broken_kernel(op_type: str, place: str, pack: Pack, error: Exception) -> str:
    return (
        f"pack {_label(pack)}: a kernel of op {op_type} at {place} is left out: {type(error).__name__}: {error}\n"
        f"Run `oprack op {op_type}` to see what is left, `oprack doctor --imports` for the whole reason."
    )


def broken_facets(op_type: str, pack: Pack, error: Exception) -> str:
    return (
        f"pack {_label(pack)}: what it adds to op {op_type} is left out: {type(error).__name__}: {error}\n"
        "The op runs without it. Run `oprack doctor --imports` for the whole reason."
    )


def orphan(what: str, op_type: str, packs: Sequence[Pack], known: Iterable[str]) -> str:
    """Facets, kernels or versions of an op that no pack in use defines."""
    by = " and ".join(_label(p) for p in packs)
    owner = home("ops", op_type)
    return f"{by} brings {what} of op {op_type!r}, which no pack in use defines" + (
        f"; `pip install {owner}` adds it" if owner else did_you_mean(op_type, known)
    )


def newer_op(op_type: str, saved: int, installed: int, pack: Pack) -> str:
    return (
        f"op {op_type}: the program was saved with version {saved}, but pack {_label(pack)} knows version {installed}: "
        "results may differ; upgrade the pack"
    )


def duplicate(op_type: str, packs: Sequence[Pack]) -> str:
    """One op, defined by this process and by a pack, or twice by one pack."""
    if all(p.found is HERE for p in packs):
        return (
            f"op {op_type!r} is defined twice in this process; a class of the same name and module takes the place of "
            "the one before, another one needs an op type of its own"
        )
    blockable = [p.found.name for p in packs if p.found not in (BUILTIN, HERE)]
    return (
        f"op {op_type!r} is defined by {' and by '.join(_label(p) for p in packs)}; expected one of them. Give your op "
        "another type" + "".join(f", or leave the pack out with OPRACK_BLOCK={n}" for n in dict.fromkeys(blockable))
    )


def settled(one: Settlement) -> str:
    """Whose is used of what several packs bring, and how the user says otherwise."""
    if one.what == "op" and not one.decided:
        return undecided(one)
    winner, others = one.winner, one.others
    named = [p.found.name for p in others]
    what = "function" if one.what == "layer" else one.what
    return (
        f"{what} {one.name!r} is brought by {' and by '.join(_label(p) for p in (winner, *others))}: that of "
        f"{winner.found.name} is used, {one.why}. OPRACK_PREFER={winner.found.name} says so without this warning, "
        + " or ".join(f"OPRACK_PREFER={n}" for n in named)
        + " takes the other, and "
        + " or ".join(f"OPRACK_BLOCK={n}" for n in named)
        + " leaves that pack out"
    )


def undecided(one: Settlement) -> str:
    """An op that several packs bring, between which nothing but their names would decide."""
    packs = (one.winner, *one.others)
    return (
        f"op {one.name!r} is brought by {' and by '.join(_label(p) for p in packs)}, and none is preferred; say which "
        f"is meant: {' or '.join(f'OPRACK_PREFER={p.found.name}' for p in packs)}, or in Python "
        f"oprack.default_manager().prefer({one.winner.found.name!r}); OPRACK_BLOCK=NAME leaves one out. A model "
        "that was saved with one of them runs with that"
    )


def saved_with_another(one: Settlement, distribution: str) -> str:
    """A model whose op is one pack's, after a model whose op of that type was another pack's."""
    return (
        f"op {one.name!r}: this program was saved with that of {distribution}, but one that ran before in this process "
        f"with that of {_label(one.winner)}; run them in two processes, or say which is meant by OPRACK_PREFER"
    )


def bringers(op_type: str, packs: Iterable[Pack]) -> list[Pack]:
    """Broken and blocked packs that are known to bring an op."""
    return [p for p in packs if p.status != "ok" and op_type in p.known()]


def _why(packs: Iterable[Pack]) -> str:
    return "; ".join(
        f"pack {_label(p)} brings it but is {p.status}: "
        + (f"{type(p.exception).__name__}: {p.exception}" if p.exception is not None else p.reason)
        for p in packs
    )


def unknown_op(op_type: str, brought_by: Sequence[Pack], known: Iterable[str], packs: Collection[Pack]) -> str:
    if brought_by:
        return f"op {op_type!r} can't be had: {_why(brought_by)}. Run `oprack doctor`"
    return f"op {op_type!r} is unknown: no installed pack brings it{_advice(op_type, known, packs)}"


def _advice(op_type: str, known: Iterable[str], packs: Collection[Pack]) -> str:
    """What to do about an op type that no installed pack brings."""
    if owner := home("ops", op_type):
        return f"; {install(owner, packs)}"
    if op_type in paddle_ops():
        reason = f" ({why})" if (why := why_missing(op_type)) else ""
        return (
            f", and none of oprack's own packs does, though Paddle has it{reason}; write it in a pack of your own "
            "(`oprack new-pack`), or install one that has it"
        )
    near = did_you_mean(op_type, {*known, *names("ops")})
    every = f"; {_EVERY_PACK}" if no_pack(pack.owner for pack in packs) else ""
    return (
        f"{near}; install the pack that does, run `oprack manifest` on it if it is your own, or see `oprack ops` for "
        f"what there is{every}"
    )


def no_such_name(name: str, error: Exception) -> str:
    """The end of a message about `oprack.<name>`, which is neither a function of packs nor an op.

    Args:
        name: The name.
        error: What a look-up among ops said, which is repeated where some distribution brings such an op.

    Returns:
        What to write instead, where the name is elsewhere, or names alike.
    """
    from oprack.names.spellings import instead  # which takes long to import

    if advice := instead("oprack", name):
        return advice
    if home("ops", name) or home("functional", name) or name in paddle_ops():
        return f": {error}"
    if spaces := [kind for kind in _OWN_WAY if home(kind, name)]:
        return f"; write oprack.{spaces[0]}.{name}"
    import oprack

    if not name.islower():  # a class, or a constant, so that no pack of ops would help
        near = did_you_mean(name, oprack.__all__)
        return f"{near}; dir(oprack) lists what it has, and packs bring classes to oprack.nn"
    if f"oprack.{name}" in sys.modules:  # an inner one, loaded while this advice was looked for
        return f"; `import oprack.{name}` first"
    near = did_you_mean(name, dir(oprack))
    return f"{near}; no installed pack brings a function or an op of that name: dir(oprack) lists what there is"


def install(owner: str, packs: Collection[Pack]) -> str:
    """The command that installs a distribution; of one that is installed, that it can't do what it should."""
    for pack in packs:
        if pack.owner == owner:
            state = "is of another age than this core and does not" if pack.status == "ok" else f"is {pack.status}"
            return f"pack {_label(pack)} should, but {state}; run `oprack doctor`, or `pip install --upgrade {owner}`"
    return f"`pip install {owner}` adds it" + (f", and {ALL_PACKS}" if no_pack(pack.owner for pack in packs) else "")


def unknown_command(name: str, known: Iterable[str], packs: Collection[Pack]) -> str:
    """known: the commands there are."""
    if owner := home("commands", name):
        return f"no installed pack brings the command {name!r}; {install(owner, packs)}"
    return f"there is no command {name!r}{did_you_mean(name, known)}; `oprack --help` lists them"


def no_pack(distributions: Iterable[str]) -> bool:
    """Whether nothing but the core, and what a process registered itself, is there."""
    return all(name in (BUILTIN.distribution, HERE.distribution) for name in distributions)


def unknown_role(role: Role, packs: Collection[Pack]) -> str:
    owner = home("roles", role.name)
    return (
        f"role {role.name!r} has no op, but {role.wanted_by} needs it: {role.meaning}, as {role.signature}; "
        + (install(owner, packs) if owner else "install a pack that has one")
        + f", or a pack of your own does by register.role({role.name!r}, OP_TYPE)"
    )


def unknown_layer(key: str, packs: Collection[Pack], known: Iterable[str], op_owner: str) -> str:
    """key: "layers.fc". known: keys that packs bring."""
    namespace, _, name = key.partition(".")
    from oprack.names.spellings import instead  # which takes long to import

    if advice := instead(namespace, name):
        return f"oprack.{namespace} has no {name!r}{advice}"
    owner, brought = home(namespace, name), [k.partition(".")[2] for k in known if k.startswith(namespace + ".")]
    near = "" if owner else did_you_mean(name, {*brought, *names(namespace)})
    text = f"oprack.{namespace} has no {name!r}{near}: no installed pack brings it"
    if op_owner:
        text += f"; {op_owner} has an op {name}, so LayerHelper({name!r}).append_op({name!r}, ...) can append it"
    unusable = [f"{_label(p)} is {p.status}" for p in packs if p.status != "ok"]
    if unusable:
        text += f"; among the installed packs {', '.join(unusable)} (run `oprack doctor`)"
    if owner:
        return f"{text}; {install(owner, packs)}"
    installed = {p.owner for p in packs}
    if absent := [d for d, kinds in homes().items() if namespace in kinds and d not in installed]:
        text += f"; packs that are not installed bring more of oprack.{namespace}: `pip install {' '.join(absent)}`"
    return f"{text}; {_OWN_WAY.get(namespace, 'packs bring such names by the hook oprack_layers')}"


# What else there is to do.
_OWN_WAY = {
    "layers": "see dir(oprack.layers) for what there is",
    "functional": "see dir(oprack.functional) for what there is",
    "optimizer": "see dir(oprack.optimizer), or derive a class from oprack.optimizer.Optimizer",
    "initializer": "see dir(oprack.initializer), or derive a class from oprack.initializer.Initializer",
    "metrics": "see dir(oprack.metrics); oprack.layers.accuracy and oprack.layers.auc compute them in a program",
    "nets": "see dir(oprack.nets) for what there is",
    "nn": "see dir(oprack.nn), or derive a class from oprack.nn.Module",
    "amp": "see dir(oprack.amp) for what there is",
    "quantization": "see dir(oprack.quantization) for what there is",
    "sparse": "see dir(oprack.sparse) for what there is",
    "array_api": "see dir(oprack.array_api) for what the array API standard has",
}


def missing(
    op_types: Sequence[str], packs: Sequence[Pack], known: Iterable[str], sources: Mapping[str, tuple[str, str]]
) -> str:
    """Ops of a program that no pack in use brings.

    Args:
        op_types: The ops.
        packs: The packs that are installed.
        known: The ops that there are.
        sources: Op type -> (distribution, version) with which the program was saved.
    """
    known = list(known)
    lines = []
    for op_type in op_types:
        if brought_by := bringers(op_type, packs):
            why = _why(brought_by)
        elif op_type in sources and not home("ops", op_type):
            distribution, version = sources[op_type]
            wanted = f'"{distribution}>={version}"' if version else distribution
            why = (
                f"no installed pack; the model says that it was saved with {distribution} {version}".rstrip()
                + f": `pip install {wanted}` adds it, if you trust who made the model"
            )
        else:
            why = "no installed pack" + _advice(op_type, known, packs)
        lines.append(f"  {op_type}: {why}")
    return (
        f"{len(op_types)} op type(s) of the program are missing:\n" + "\n".join(lines) + "\n"
        "Install the packs that bring them (see `oprack packs` for what is installed), or run `oprack doctor`"
    )
