"""Which ops may be recorded into a CUDA graph: `python -m oprack_cuda.testing.survey FOLDER_OF_CASES` writes
capturable.txt, the ops whose kernels copied nothing from the host in any case and did not wait in every one.

A copy from the host would be repeated from memory that has other contents by then. A wait can't go wrong unseen: CUDA
refuses it while it records, and the plan goes on running op by op.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from oprack.errors import OprackError
from oprack.testing.cases import load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import run_case

from oprack_cuda import dnn
from oprack_cuda.graphs import FILE
from oprack_cuda.library import CUDA
from oprack_cuda.testing.context import OpWatch, strict_executor

# ops that no case runs, since passes make them; their tests see that they copy nothing
OWN = ("cuda_bias_act",)


def survey(files: Iterable[Path]) -> OpWatch:
    """Run every case of the files, first with the kernels of library "cuda", then without them."""
    watch = OpWatch()
    for case in (c for f in files for c in load_cases(f)):
        for stage in (s for s in STAGES if case.has(s)):
            for excluded in ((), ("cuda",)):
                try:
                    run_case(case, stage, strict_executor(prepared=False, watch=watch, excluded_libraries=excluded))
                except OprackError:  # what fails is for the tests of packs
                    continue
    return watch


if __name__ == "__main__":
    CUDA.usable = lambda: True  # type: ignore[method-assign]
    dnn.CUDNN.usable = lambda: False  # type: ignore[method-assign]
    found = survey(sorted(Path(sys.argv[1]).rglob("*.npz")))
    ops = [op for op in found.ran if not found.copied[op] and found.waited[op] < found.ran[op]]
    ops = sorted([*ops, *OWN])
    FILE.write_text("\n".join(ops) + "\n")
    print(f"{FILE}: {len(ops)} of {len(found.ran)} ops", file=sys.stderr)
