"""From the bytes of an `inference.json` to a Program."""

from __future__ import annotations

from collections import Counter

from oprack.desc import OpDesc, ProgramDesc, VarDesc
from oprack.errors import CorruptModelError, UnimplementedError
from oprack.io.export import PROGRAM_VERSION
from oprack.program import Program
from oprack.types import AttrType, VarType

from oprack_pir.blocks import BlockTranslator
from oprack_pir.document import Document, parse
from oprack_pir.values import Frame, Variables


def read_program(data: bytes | bytearray | memoryview) -> Program:
    """Read a program of Paddle 3.

    Args:
        data: The bytes of an `inference.json`.

    Returns:
        The program in Fluid's ops, with feed and fetch ops. Parameters, inputs and outputs have the names that PIR
        gives them.

    Raises:
        CorruptModelError: The bytes are no such program.
        BlockDepthError: Its blocks lie too deep in each other.
        UnimplementedError: It has ops, or forms of ops, that Fluid has none for; the message lists all such ops.
    """
    document = parse(data)
    program = ProgramDesc()
    variables = Variables(_names_of_outputs(document))
    holders = variables.claim("feed", "the feed list"), variables.claim("fetch", "the fetch list")
    translator = BlockTranslator(program, document.version, variables)
    _check_known(document, translator)
    frame = Frame(program.blocks[0])
    translator.block(document.block, frame)
    if not translator.fetches:
        raise CorruptModelError("the program has no op pd_op.fetch; expected an inference model with outputs")
    _drop_unread(program, translator, set(translator.fetches.values()))
    _add_feed_and_fetch(program, translator, *holders)
    program.version = PROGRAM_VERSION
    used = {op.type for block in program.blocks for op in block.ops}
    infos = {op_type: translator.ops.info(op_type) for op_type in sorted(used)}
    program.op_version_map |= {op_type: info.version for op_type, info in infos.items() if info and info.version}
    return Program(program)


def _names_of_outputs(document: Document) -> dict[int, str]:
    """Id of each value that is fetched -> the name that `fetch` gives it, where no input or parameter has that name."""
    named = ("builtin.parameter", "pd_op.data", "pd_op.feed")
    taken = {"feed", "fetch"} | {str(op.attrs.get("name")) for op in document.block.ops if str(op) in named}
    found: dict[int, str] = {}
    for op in document.block.ops:
        name = op.attrs.get("name")
        if str(op) == "pd_op.fetch" and len(op.operands) == 1 and isinstance(name, str) and name not in taken:
            taken.add(name)
            found.setdefault(op.operands[0], name)
    return found


def _check_known(document: Document, translator: BlockTranslator) -> None:
    unknown = Counter(str(op) for op in document.block.walk() if not translator.knows(op))
    if unknown:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
        raise UnimplementedError(
            f"the program (PIR version {document.version}) has {len(unknown)} ops that oprack-pir has no Fluid op for, "
            f"with how often each occurs: {listed}; expected ops of Paddle 2 and 3 for inference. A newer oprack-pir "
            "may know them (pip install -U oprack-pir)"
        )


def _drop_unread(program: ProgramDesc, translator: BlockTranslator, fetched: set[str]) -> None:
    """Take out constants that became attributes, with their variables."""
    read = {name for block in program.blocks for op in block.ops for name in op.input_arg_names()} | fetched
    unread = {name: op for name, op in translator.constants.items() if name not in read}
    gone = {id(op) for op in unread.values()}
    for block in program.blocks:
        block.ops = [op for op in block.ops if id(op) not in gone]
        written = {name for op in block.ops for name in op.output_arg_names()}
        for name in block.vars.keys() & unread.keys() - written:
            del block.vars[name]


def _add_feed_and_fetch(program: ProgramDesc, translator: BlockTranslator, feed: str, fetch: str) -> None:
    block = program.blocks[0]
    col = {"col": AttrType.INT}
    feeds = [OpDesc("feed", {"X": feed}, {"Out": name}, {"col": i}, col) for i, name in enumerate(translator.feeds)]
    names = [name for _, name in sorted(translator.fetches.items())]
    fetches = [OpDesc("fetch", {"X": name}, {"Out": fetch}, {"col": i}, col) for i, name in enumerate(names)]
    block.ops = [*feeds, *block.ops, *fetches]
    block.vars[feed] = VarDesc(feed, VarType.FEED_MINIBATCH, persistable=True)
    block.vars[fetch] = VarDesc(fetch, VarType.FETCH_LIST, persistable=True)
