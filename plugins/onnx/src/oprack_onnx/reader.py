"""From the bytes of a model to a Program and its parameters."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto
from oprack.desc import OpDesc, VarDesc
from oprack.errors import CorruptModelError, MissingPackError, ModelError, UnimplementedError
from oprack.io.export import PROGRAM_VERSION
from oprack.io.inference_model import ReadModel
from oprack.program import Program
from oprack.python.text import printable
from oprack.types import AttrType, VarType

from oprack_onnx.frames import CONTRADICTIONS, DOMAINS, Frame, contradiction, graph_types, value_type
from oprack_onnx.graphs import GraphReader
from oprack_onnx.model import Tensors, external_file, external_locations, parse, with_types, without_functions
from oprack_onnx.values import Value
from oprack_onnx.writer import Writer, info_of


def read_model(data: bytes | memoryview, folder: Path | None) -> ReadModel:
    """Read a model of ONNX.

    Args:
        data: The bytes of an `.onnx` file.
        folder: Where its external data lies; None for a model that has no file.

    Returns:
        The program in oprack's ops, with feed and fetch ops, its parameters, and the files that it names. Inputs,
        outputs and initializers keep their names.

    Raises:
        CorruptModelError: The bytes are no such model.
        CorruptParameterError, MissingParameterError, UnsafeNameError: A tensor can't be read.
        UnimplementedError: It has ops, or forms of ops, that oprack has none for; the message lists all such ops.
    """
    try:
        return translate(parse(data), folder)
    except (ModelError, UnimplementedError, MissingPackError):
        raise
    except CONTRADICTIONS as error:
        raise contradiction(error, "the model") from error


def translate(model: ModelProto, folder: Path | None = None) -> ReadModel:
    """As `read_model`, for a model that was parsed."""
    model = without_functions(model)
    writer = Writer()
    opsets = {DOMAINS.get(o.domain, o.domain): o.version for o in model.opset_import}
    reader = GraphReader(writer, Tensors(folder), opsets)
    typed = with_types(model)
    frame = Frame({}, graph_types(typed.graph))
    inputs = _inputs(model, writer, frame)
    reader.initializers(model.graph, frame)
    reader.nodes(model.graph, frame)
    if reader.lacking:
        listed = "".join(f"\n  {op}: {why}" for op, why in sorted(reader.lacking.items()))
        raise UnimplementedError(
            f"the model (opset {opsets.get('', '?')}) has {len(reader.lacking)} sorts of ops that oprack-onnx can't "
            f"write:{listed}"
        )
    outputs = _outputs(model, writer, frame)
    _feed_and_fetch(writer, inputs, outputs)
    _drop_unread(writer, outputs)
    program = writer.program
    program.version = PROGRAM_VERSION
    used = {op.type for block in program.blocks for op in block.ops}
    infos = {op: info_of(op) for op in sorted(used)}
    program.op_version_map |= {op: info.version for op, info in infos.items() if info and info.version}
    files = [external_file(folder, f, "the model") for f in external_locations(model)] if folder is not None else []
    return ReadModel(Program(program), writer.parameters, files)


def _inputs(model: ModelProto, writer: Writer, frame: Frame) -> list[str]:
    """Variables for what is fed: inputs that are no initializers."""
    held = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
    names = []
    for info in model.graph.input:
        if info.name in held:
            continue
        known = value_type(info.type)
        if known is None:
            raise UnimplementedError(
                f"input {printable(info.name)!r} is {str(info.type).strip()!r:.200}; expected a tensor, or a sequence "
                "of tensors, of a dtype that oprack has"
            )
        value = writer.declare(info.name, *known)
        if value.name != info.name:
            raise CorruptModelError(f"input {printable(info.name)!r} has a name that is taken; expected another one")
        writer.block.vars[value.name].need_check_feed = known[1] is not None and known[2] is VarType.LOD_TENSOR
        frame.values[info.name] = value
        names.append(info.name)
    return names


def _outputs(model: ModelProto, writer: Writer, frame: Frame) -> list[str]:
    """The variables that are fetched, under the names that the model gives them."""
    names: list[str] = []
    for info in model.graph.output:
        value = frame.find(info.name, "an output of the model")
        if value is None:
            raise CorruptModelError(f"output {printable(info.name)!r} is absent; expected a value")
        if value.name != info.name or value.name in writer.parameters or value.name in names:
            target = writer.declare(info.name, value.dtype, value.shape, value.kind)
            writer.copy(value, target)
            value = Value(target.name, value.dtype, value.shape, None, value.kind)
        names.append(value.name)
    return names


def _feed_and_fetch(writer: Writer, inputs: list[str], outputs: list[str]) -> None:
    block, col = writer.program.blocks[0], {"col": AttrType.INT}
    feeds = [OpDesc("feed", {"X": "feed"}, {"Out": name}, {"col": i}, col) for i, name in enumerate(inputs)]
    fetches = [OpDesc("fetch", {"X": name}, {"Out": "fetch"}, {"col": i}, col) for i, name in enumerate(outputs)]
    block.ops = [*feeds, *block.ops, *fetches]
    block.vars["feed"] = VarDesc("feed", VarType.FEED_MINIBATCH, persistable=True)
    block.vars["fetch"] = VarDesc("fetch", VarType.FETCH_LIST, persistable=True)


def _drop_unread(writer: Writer, outputs: list[str]) -> None:
    """Take out parameters that nothing reads any more, since they became attributes or other parameters."""
    read = {n for block in writer.program.blocks for op in block.ops for n in op.input_arg_names()}
    read |= {
        str(v)
        for b in writer.program.blocks
        for op in b.ops
        for k, v in op.attrs.items()
        if k == "axes" and isinstance(v, str)
    }
    for name in [n for n in writer.parameters if n not in read and n not in outputs]:
        del writer.parameters[name]
        writer.program.blocks[0].vars.pop(name, None)


__all__ = ["read_model", "translate"]
