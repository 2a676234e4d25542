"""What to say of packs, and of names that are not there: which distribution brings one, how it is spelled here.

The tables come with the distribution oprack-names, in `oprack/names`; without it messages say less. `homes.toml` lists
what oprack's own distributions bring (`oprack manifest --homes` writes it), so that an unknown op can be answered with
the command that installs it. `paddle_ops.txt` lists the op types of Paddle 2.6.2, and `paddle_missing.toml` says why no
distribution brings some of them.

`spellings.toml` has the spellings of PyTorch, NumPy and older Paddle. Each entry of [write.<space>] is a line that
runs, with the tensors and modules of tests/data/names.toml; tests run every one of them. Those of [absent.<space>] are
sentences about what there is not, and [keywords] are arguments under another name.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from oprack.errors import NotFoundError, did_you_mean
from oprack.packs.installed.entry_points import BUILTIN, HERE, FoundPack

if TYPE_CHECKING:
    from oprack.op.vocabulary import Role
    from oprack.packs.choice import Settlement
    from oprack.packs.pack import Pack

DISTRIBUTION = "oprack-names"
FILENAME = "homes.toml"
Homes = dict[str, dict[str, tuple[str, ...]]]


def table(filename: str) -> Path | None:
    """Where a table lies; None where oprack-names is not installed."""
    import oprack

    files = (Path(folder, "names", filename) for folder in oprack.__path__)
    return next((file for file in files if file.is_file()), None)


def _text(filename: str) -> str:
    file = table(filename)
    return "" if file is None else file.read_text(encoding="utf-8")


@cache
def homes() -> Homes:
    """distribution -> kind ("ops", "roles", "layers", "optimizer" ...) -> names."""
    import tomllib

    return {
        distribution: {kind: tuple(names.split()) for kind, names in kinds.items()}
        for distribution, kinds in tomllib.loads(_text(FILENAME)).items()
    }


def home(kind: str, name: str) -> str:
    """The distribution that brings a name; `kind` is "ops", "roles", "layers" and so on; "" when none does."""
    return _index(kind).get(name, "")


def names(kind: str) -> Iterable[str]:
    """All names; `kind` is "ops", "roles", "layers" and so on."""
    return _index(kind).keys()


@cache
def _index(kind: str) -> dict[str, str]:
    return {name: distribution for distribution, kinds in homes().items() for name in kinds.get(kind, ())}


@cache
def paddle_ops() -> tuple[str, ...]:
    """The op types of Paddle 2.6.2, sorted."""
    lines = _text("paddle_ops.txt").splitlines()
    return tuple(name for line in lines if not line.startswith("#") for name in line.split())


def why_missing(op_type: str) -> str:
    """Why none of oprack's distributions brings an op of Paddle's.

    Args:
        op_type: The op.

    Returns:
        The reason; "" for an op that a distribution brings, or that is not Paddle's.
    """
    return "" if home("ops", op_type) else missing_reasons().get(op_type, "")


@cache
def missing_reasons() -> Mapping[str, str]:
    """Op types of Paddle that no distribution brings, with the reason of each."""
    import tomllib

    data = tomllib.loads(_text("paddle_missing.toml"))
    return {op_type: entry["why"] for entry in data.get("reason", ()) for op_type in entry["ops"].split()}


@cache
def spellings() -> dict[str, Any]:
    """The table: "write" and "absent" by space and name, and "keywords" by name."""
    import tomllib

    return {"write": {}, "absent": {}, "keywords": {}} | tomllib.loads(_text("spellings.toml"))


def instead(space: str, name: str) -> str:
    """The end of a message about an unknown name.

    Args:
        space: Where it was looked for: "oprack", "tensor", "module" (methods of modules), or a namespace such as "nn".
        name: The name.

    Returns:
        "; write ..." or "; ...", "" when the table does not have the name.
    """
    table = spellings()
    line = table["write"].get(space, {}).get(name)
    if line:
        return f"; write {line}"
    sentence = table["absent"].get(space, {}).get(name)
    return f"; {sentence}" if sentence else ""


def refuse_others(call: str, accepted: str, other: Mapping[str, Any]) -> NoReturn:
    """Refuse keyword arguments that a call does not have.

    Args:
        call: What is called, for the message.
        accepted: Its arguments, for the message.
        other: What was given besides.

    Raises:
        TypeError: There is one; the message says under which name the call has it, where that is known.
    """
    raise TypeError(f"{call}: {_unknown(other)}; expected {accepted}{keywords_instead(accepted.split(', '), other)}")


def require_keywords(owner: type, given: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that a class's `__init__` does not have, if the table knows them under another name.

    Args:
        owner: The class that is being created.
        given: The keyword arguments.

    Raises:
        TypeError: There is one.
    """
    if given.keys().isdisjoint(spellings()["keywords"]):
        return
    # `**options` passes what it holds on to the classes above.
    inits = [vars(cls)["__init__"] for cls in owner.__mro__[:-1] if "__init__" in vars(cls)]
    parameters = [name for init in inits for name in inspect.signature(init).parameters]
    other = {n: v for n, v in given.items() if n not in parameters}
    if advice := keywords_instead(parameters, other):
        raise TypeError(f"{owner.__name__}: {_unknown(other)}{advice}")


def keywords_instead(parameters: Iterable[str], other: Mapping[str, Any]) -> str:
    """What to write for keyword arguments under another name.

    Args:
        parameters: The names that the call has.
        other: What was given under names that it does not have; `...` for a value that is not known.

    Returns:
        "; write axis=1", or "" when nothing is known.
    """
    known, table = set(parameters), spellings()["keywords"]
    found = []
    for name, value in other.items():
        forms = [form for form in table.get(name, ()) if form.partition("=")[0] in known]
        found += [form.replace("...", _short(value)) for form in forms[:1]]
    return f"; write {', '.join(found)}" if found else ""


def _unknown(other: Mapping[str, Any]) -> str:
    return f"got {', '.join(f'{n}={_short(v)}' for n, v in other.items())}, which is no argument of it"


def _short(value: Any) -> str:
    text = "..." if value is ... else repr(value)
    return text if len(text) <= 60 and "\n" not in text else "..."


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
    return f"{near}; install the pack that does, or see `oprack ops` for what there is{every}"


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


def missing(op_types: Sequence[str], packs: Sequence[Pack], known: Iterable[str]) -> str:
    known = list(known)
    lines = []
    for op_type in op_types:
        brought_by = bringers(op_type, packs)
        lines.append(
            f"  {op_type}: {_why(brought_by) if brought_by else 'no installed pack' + _advice(op_type, known, packs)}"
        )
    return (
        f"{len(op_types)} op type(s) of the program are missing:\n" + "\n".join(lines) + "\n"
        "Install the packs that bring them (see `oprack packs` for what is installed), or run `oprack doctor`"
    )
