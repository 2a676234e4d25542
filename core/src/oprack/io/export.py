"""save_inference_model: a program cut down to what its outputs need, with feed and fetch ops, and its parameters."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.desc.reach import inner_blocks, named_by_attributes, reads, writes
from oprack.errors import (
    DuplicateOpError,
    FeedNameError,
    FetchNameError,
    InvalidArgumentError,
    PackError,
    UnknownOpError,
)
from oprack.io.atomic import AtomicSave
from oprack.io.parameters import collect_values, persistable_vars
from oprack.io.streams import write_variable
from oprack.op.info import OpInfo
from oprack.packs import op_info
from oprack.packs.installed.entry_points import HERE
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.tensor import Scope
from oprack.types import AttrType, VarType

# Values of the attribute op_role, which are bits
_BACKWARD, _OPTIMIZE, _NOT_SPECIFIED = 1, 2, 4096


def prune(program: ProgramDesc, feeds: Collection[str], targets: Collection[str]) -> None:
    """Remove from block 0 what is not needed to compute `targets` from `feeds`, then the blocks that nothing uses.

    Ops of the backward and optimize roles go in any case. Sub-blocks of ops that stay are left whole and renumbered.
    Neither feed nor fetch ops stay.
    """
    block = program.blocks[0]
    needed = set(targets) - set(feeds)
    kept: list[OpDesc] = []
    for op in reversed(block.ops):
        if op.type in ("feed", "fetch") or _is_training(op):
            continue
        # is_target marks ops that are wanted for what they do and not for what they write
        if op.is_target or not needed.isdisjoint(writes(op, program)):
            kept.append(op)
            # A name that is written stays needed: another op may write it before, in place
            needed.update(set(reads(op, program)).difference(feeds))
    block.ops = kept[::-1]
    _drop_blocks(program)
    used = set(feeds) | set(targets)
    for other in program.blocks:
        for op in other.ops:
            used.update(op.input_arg_names(), op.output_arg_names(), named_by_attributes(op))
    block.vars = {name: var for name, var in block.vars.items() if name in used}


def _is_training(op: OpDesc) -> bool:
    role = op.attr("op_role", 0)
    return isinstance(role, int) and role != _NOT_SPECIFIED and bool(role & (_BACKWARD | _OPTIMIZE))


def _drop_blocks(program: ProgramDesc) -> None:
    """Remove the blocks that no op reaches, and number the others anew."""
    reached = {0} | {block.idx for op in program.blocks[0].ops for block in inner_blocks(op, program)}
    # Names are looked up in parents and forward blocks, so these stay although nothing runs them.
    for index in list(reached):
        reached.update(block.idx for block in program.blocks[index].ancestors())
    program.blocks = [program.blocks[i] for i in sorted(reached)]
    new = {block.idx: i for i, block in enumerate(program.blocks)}
    for block in program.blocks:
        block.idx = new[block.idx]
        block.parent_idx = new.get(block.parent_idx, -1)
        block.forward_block_idx = new.get(block.forward_block_idx, -1)
        for op in block.ops:
            for name, indices in op.block_attrs().items():
                renumbered = [new[i] for i in indices]
                op.attrs[name] = renumbered[0] if op.attr_types[name] is AttrType.BLOCK else renumbered


PROGRAM_VERSION = 2006002
"""Written into programs that say no version of their own: that of Paddle 2.6.2, whose format is written."""


def save_inference_model(
    path_prefix: str | os.PathLike[str],
    program: Program,
    feed_names: Sequence[str],
    fetch_names: Sequence[str],
    scope: Scope,
    *,
    clip_extra: bool = True,
) -> None:
    """Write `<path_prefix>.pdmodel` and, when the program has parameters, `<path_prefix>.pdiparams`; both or none.

    Args:
        path_prefix: Where to write, without the ending.
        program: The program; it is not changed.
        feed_names: Variables that runs feed.
        fetch_names: Variables that runs fetch.
        scope: Where parameters are.
        clip_extra: Whether to leave out what runs do not need, see inference_program.

    Raises:
        FeedNameError: Block 0 has no such variable to feed.
        FetchNameError: Block 0 has no such variable to fetch.
        MissingParameterError: Parameters have no value.
        InvalidArgumentError: A parameter does not fit its VarDesc, or the prefix has no name of a file.
    """
    prefix = os.fsdecode(path_prefix)
    if not os.path.basename(prefix):  # what begins with a dot is hidden, and `load_inference_model` finds no such file
        raise InvalidArgumentError(
            f"save_inference_model: path_prefix is {prefix!r}; expected one with a name, such as "
            f"{os.path.join(prefix, 'model')!r} for model.pdmodel and model.pdiparams"
        )
    exported = inference_program(program, feed_names, fetch_names, clip_extra=clip_extra)
    values = collect_values(scope, persistable_vars(exported))
    with AtomicSave() as save:
        if values:
            with save.open(prefix + ".pdiparams") as file:
                for name, value in values.items():
                    write_variable(file, value, name)
        with save.open(prefix + ".pdmodel") as file:
            file.write(exported.serialize())
    if not values:
        Path(prefix + ".pdiparams").unlink(missing_ok=True)  # of a model that was here before


def inference_program(
    program: Program, feed_names: Sequence[str], fetch_names: Sequence[str], *, clip_extra: bool = True
) -> Program:
    """A copy with only what `fetch_names` need, attributes `is_test` set, feed and fetch ops for these names.

    A program that was built here gets the version of the format and those of the ops from the installed packs; one that
    was loaded keeps its own.

    Args:
        program: The program; it is not changed.
        feed_names: Variables that runs feed.
        fetch_names: Variables that runs fetch.
        clip_extra: Whether to drop the Python lines that created the ops, and extra attributes that hold their
            defaults. One that was set stays: Paddle's gru needs its is_test.

    Returns:
        The copy.

    Raises:
        FeedNameError: Block 0 has no such variable to feed.
        FetchNameError: Block 0 has no such variable to fetch.
    """
    desc = program.desc.clone()
    block = desc.blocks[0]
    _check_names(block, feed_names, "feed", FeedNameError)
    _check_names(block, fetch_names, "fetch", FetchNameError)
    if not fetch_names:
        raise FetchNameError("fetch_names is empty; expected the names of the model's outputs")
    # the program's own ops, which pruning takes out, may carry attributes that are to be kept
    feeds = {name: op for op in block.ops if op.type == "feed" for name in op.output("Out")}
    fetches = {name: op for op in block.ops if op.type == "fetch" for name in op.input("X")}
    prune(desc, feed_names, fetch_names)
    op_types = {op.type for other in desc.blocks for op in other.ops}
    infos = _installed(op_types)
    built_here = not desc.version
    _for_inference(desc, infos, built_here, clip_extra)
    feed_ops = [
        _column_op(feeds.get(name), OpDesc("feed", {"X": "feed"}, {"Out": name}), col)
        for col, name in enumerate(feed_names)
    ]
    fetch_ops = [
        _column_op(fetches.get(name), OpDesc("fetch", {"X": name}, {"Out": "fetch"}), col)
        for col, name in enumerate(fetch_names)
    ]
    block.ops = [*feed_ops, *block.ops, *fetch_ops]
    _add_holders(block, program.desc.blocks[0], feed_ops, fetch_ops)
    if built_here:
        desc.version = PROGRAM_VERSION
        desc.op_version_map |= {op_type: info.version for op_type, info in sorted(infos.items()) if info.version}
    # A program that was loaded keeps what its file said of ops that no installed pack brings.
    desc.op_sources = {t: s for t, s in {**desc.op_sources, **op_sources(infos)}.items() if t in op_types}
    return Program(desc)


def op_sources(op_types: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Which distributions bring ops, with their versions; without those that this process defines itself.

    Args:
        op_types: Ops that installed packs bring.

    Returns:
        Op type -> (distribution, version).
    """
    packs = {t: default_manager().pack_of(t) for t in op_types}
    return {t: (p.owner, p.found.version) for t, p in sorted(packs.items()) if p.found is not HERE}


def _for_inference(desc: ProgramDesc, infos: Mapping[str, OpInfo], built_here: bool, clip_extra: bool) -> None:
    """Set is_test in all ops that know it, and drop the attributes that runs do not need."""
    for op in (op for block in desc.blocks for op in block.ops):
        info = infos.get(op.type)
        if "is_test" in op.attrs or (built_here and info is not None and "is_test" in info.proto.attrs):
            op.set_attr("is_test", True)
        if clip_extra:
            _clip_extra(op, info)


def _clip_extra(op: OpDesc, info: OpInfo | None) -> None:
    op.remove_attr("op_callstack")
    for name, proto in info.proto.attrs.items() if info is not None else ():
        default = list(proto.default) if isinstance(proto.default, tuple) else proto.default
        if proto.extra and name in op.attrs and op.attrs[name] == default:
            op.remove_attr(name)


def _check_names(block: BlockDesc, names: Sequence[str], what: str, error: type[Exception]) -> None:
    unknown = [name for name in names if name not in block.vars]
    if unknown or len(set(names)) != len(names):
        raise error(
            f"{what}_names is {list(names)}; expected different names of variables of block 0"
            + (f", which has no {', '.join(map(repr, unknown))}" if unknown else "")
        )


def _column_op(old: OpDesc | None, new: OpDesc, col: int) -> OpDesc:
    op = new if old is None else old
    op.set_attr("col", col, AttrType.INT)
    return op


def _add_holders(block: BlockDesc, before: BlockDesc, feed_ops: list[OpDesc], fetch_ops: list[OpDesc]) -> None:
    """The variables that feed ops read from and fetch ops write to."""
    named = [(op.input("X"), VarType.FEED_MINIBATCH) for op in feed_ops]
    named += [(op.output("Out"), VarType.FETCH_LIST) for op in fetch_ops]
    for names, kind in named:
        for name in names:
            old = before.vars.get(name)
            if old is not None and old.type is not kind:
                raise InvalidArgumentError(
                    f"variable {name!r} is a {old.type.name} of the program, but the exported model needs that name as "
                    f"{kind.name}; rename the variable"
                )
            if name not in block.vars:
                block.vars[name] = VarDesc(name, kind, persistable=True) if old is None else old.clone()


def _installed(op_types: set[str]) -> dict[str, OpInfo]:
    """What the installed packs say about the ops; a model can be saved without having all of them."""
    infos = {}
    for op_type in op_types:
        with contextlib.suppress(UnknownOpError, DuplicateOpError, PackError):
            infos[op_type] = op_info(op_type)
    return infos
