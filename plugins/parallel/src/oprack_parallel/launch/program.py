"""`python -m oprack_parallel.launch.program PROGRAM ...`: as `python PROGRAM ...`, and it ends all ranks with it.

An exception reaches the excepthook that the engine sets, but sys.exit("no data") and sys.exit(3) do not: the
interpreter ends, and MPI waits there for ranks that wait for this one. So SystemExit is caught here.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import types


def main(argv: list[str]) -> int:
    """Run the program; returns its exit status."""
    program = argv[0]
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=program, __builtins__=builtins)
    sys.modules["__main__"] = module
    with io.open_code(os.path.abspath(program)) as file:
        source = file.read()
    try:
        exec(compile(source, program, "exec"), module.__dict__)
    except SystemExit as e:
        return _ended(e)
    except BaseException as e:
        trace = e.__traceback__
        sys.excepthook(type(e), e, None if trace is None else trace.tb_next)  # which ends all ranks
        return 1
    return 0


def _ended(error: SystemExit) -> int:
    """The exit status that SystemExit asks for; where it is not 0, all ranks end with it."""
    said = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    if not said:
        return 0
    if not isinstance(error.code, int):
        print(error.code, file=sys.stderr)
    # Not before the program, which may set variables that oprack reads when it is imported.
    from oprack.parallel.watchdog import failure, line_of
    from oprack.parallel.world import opened

    world = opened()
    if world is not None and world.size > 1:
        line = line_of(error.__traceback__)
        reason = f"SystemExit: {error.code}"
        print(failure(world, reason, error.__traceback__), file=sys.stderr, flush=True)
        world.abort(said & 255 or 1, reason + (f"; at {line}" if line else ""))
    return said


if __name__ == "__main__":
    __name__ = __spec__.name  # so that this frame is none of the user's
    sys.exit(main(sys.argv[1:]))
