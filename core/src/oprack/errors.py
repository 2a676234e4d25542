"""Error classes. Every message says what was passed, what was expected and how to fix it.

The names follow Fluid's `platform::errors`; bad input of each kind has a class of its own, so that a caller can
tell a truncated file from a missing pack without reading text. Each class also derives from the built-in exception
that a Python programmer would expect.
"""

from __future__ import annotations

from collections.abc import Iterable


class OprackError(Exception):
    """Base of every error that oprack raises on purpose."""


class InvalidArgumentError(OprackError, ValueError):
    """A value, shape, dtype or LoD is not what an op or a call accepts."""


class NotFoundError(OprackError, LookupError):
    """A variable, op, kernel, pack or file does not exist."""


class AlreadyExistsError(OprackError, ValueError):
    """A facet, kernel or name was set twice."""


class PreconditionNotMetError(OprackError, RuntimeError):
    """Something has to be done first, for example a variable filled."""


class UnimplementedError(OprackError, NotImplementedError):
    """A documented refusal: the message says what is not supported."""


class WorkerError(OprackError, RuntimeError):
    """A worker process of a DataLoader died, or raised an exception that can't be raised again in another process."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A worker process of a DataLoader did not make its batch in time."""


class CollectiveError(OprackError, RuntimeError):
    """Ranks that have to call the same collectives disagree, or one of them is gone."""


# Op definitions and registration ------------------------------------------------------------------------------------
class DefinitionError(OprackError, TypeError):
    """An op definition, a kernel or a facet contradicts its contract."""


class KernelResultError(DefinitionError):
    """A kernel returned something else than its op's rules promise; who called the op did nothing wrong."""


class AttributeValueError(InvalidArgumentError):
    """An attribute of an op is missing, has the wrong type, or lies outside its range."""


class NoBufferError(DefinitionError, AttributeError):
    """A kernel reads an input of which its op needs only the shape."""


class DuplicateOpError(AlreadyExistsError):
    """Two packs bring the same op type."""


class DuplicateKernelError(AlreadyExistsError):
    """Two kernels of one op have the same OpKernelType, predicate and priority."""


class UnknownOpError(NotFoundError):
    """No installed pack brings the op type."""


class MissingPackError(UnknownOpError):
    """A program needs op types that no installed pack brings; all of them are listed at once."""


class UnknownRoleError(UnknownOpError):
    """No installed pack has an op for a role that the core needs; see oprack.op.vocabulary."""


class UnknownLayerError(NotFoundError, AttributeError):
    """No installed pack brings the layer, optimizer, initializer or metric of that name."""


class KernelNotFoundError(NotFoundError):
    """No kernel of the op fits; the message lists every candidate with the reason it lost."""


class NotDifferentiableError(OprackError, RuntimeError):
    """An op on the path to the loss has no gradient."""


class GraphError(OprackError, RuntimeError):
    """A pass left a graph that can't run, or asked for a change that its names or dependencies forbid."""


# Packs --------------------------------------------------------------------------------------------------------------
class PackError(OprackError):
    """A pack is broken; the others go on."""


class PackImportError(PackError, ImportError):
    """A pack, or the module that its manifest names, can't be imported."""


class ManifestError(PackError, ValueError):
    """A pack's ops.toml is malformed."""


class PackVersionError(PackError):
    """A pack was written for a newer core."""


# Programs and files -------------------------------------------------------------------------------------------------
class ModelError(OprackError, ValueError):
    """A model can't be used as it is."""


class CorruptModelError(ModelError):
    """The bytes are no ProgramDesc: truncated, altered, or another kind of file."""


class CorruptParameterError(ModelError):
    """A parameter stream is truncated, altered, or does not match its VarDesc."""


class OversizedTensorError(CorruptParameterError):
    """The dims of a tensor overflow or need more bytes than the file holds."""


class InvalidLoDError(InvalidArgumentError):
    """LoD offsets do not start at 0, decrease, or do not match the level below or the rows."""


class UnsafeNameError(ModelError):
    """A variable's name would lead outside the model's directory."""


class BlockCycleError(ModelError):
    """Sub-blocks of a program contain each other, or a block index points nowhere."""


class BlockDepthError(ModelError):
    """Blocks of a program are nested deeper than a run can follow."""


class MissingParameterError(ModelError, NotFoundError):
    """A persistable variable of the program has no value in the files."""


class FeedError(InvalidArgumentError):
    """A fed value does not fit the program."""


class FeedNameError(FeedError):
    """A fed name is not an input of the program, or an input was not fed."""


class FeedDtypeError(FeedError):
    """A fed value has another dtype than its variable."""


class FeedShapeError(FeedError):
    """A fed value has another rank or other fixed dims than its variable."""


class FeedLoDError(FeedError):
    """A fed value has another number of LoD levels than its variable, or broken offsets."""


class FetchNameError(NotFoundError):
    """A fetched name is not a variable of the program."""


class CheckpointError(ModelError):
    """A checkpoint can't be used."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint is truncated or altered: a checksum or a size is not what its manifest says."""


class CheckpointBusyError(CheckpointError):
    """Another process, or another thread, saves into the directory at this moment."""


class CheckpointMismatchError(CheckpointError):
    """A checkpoint belongs to another program; all differences are listed."""


# Running ------------------------------------------------------------------------------------------------------------
class OpError(OprackError, RuntimeError):
    """An op failed while running; names the op, its slots, the Python line that created it, and the cause."""


CODE_ERRORS = (NameError, ImportError, SyntaxError)
"""What code raises that is wrong whatever its arguments are, such as a kernel that reads a name nobody set."""


class NanInfError(OpError):
    """The NaN/Inf check found a non-finite value in an output of an op."""


class MemoryLimitError(OprackError, MemoryError):
    """An op's outputs would take more memory than the run may have."""


class LoopLimitError(OprackError, RuntimeError):
    """The loops of a program went round more often than the run allows."""


class InputOverwrittenError(OpError):
    """A kernel wrote to an input that its op does not declare in place."""


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """` (did you mean a, b or c?)` with what is alike among `known`, for a message; "" when nothing is."""
    import difflib

    near = difflib.get_close_matches(word, list(dict.fromkeys(known)), n=3, cutoff=cutoff)
    choice = " or ".join(part for part in (", ".join(near[:-1]), *near[-1:]) if part)
    return f" (did you mean {choice}?)" if near else ""
