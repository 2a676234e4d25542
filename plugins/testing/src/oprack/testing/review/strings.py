"""Whether every string names something, of manifests and hooks, passes included."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from oprack.ir.survey import survey_passes
from oprack.packs.checks import import_problems, orphans
from oprack.testing.review.subject import Finding, Subject

_ARRAY_LIBRARIES = ("numpy", "cupy", "scipy")


def review(subject: Subject) -> Iterator[Finding]:
    """Import everything that the pack names, and compare the patterns of its passes with the ops."""
    owner = subject.source.distribution
    for problem in import_problems(subject.manager, owner):
        yield Finding("strings", problem, "correct the name, or what it names")
    for text in orphans(subject.manager, owner):
        yield Finding("strings", text, "correct the op type, or require the pack that defines the op", note=True)
    survey = survey_passes(subject.manager)
    for found, note in ((survey.problems, False), (survey.notes, True)):
        for text in found:
            if re.search(rf" of {re.escape(owner)}(?![\w-])", text):
                yield Finding("strings", text, "correct the name in the pass or where it is registered", note)
    for kind in ("place", "library", "observer", "format", "command"):
        yield from _targets(subject, kind)
    yield from _array_libraries(subject)


def _targets(subject: Subject, kind: str) -> Iterator[Finding]:
    from oprack.errors import OprackError
    from oprack.packs.installed.resolve import import_object

    for owner, key, target in subject.manager.targets(kind):
        if owner == subject.source.distribution and isinstance(target, str):
            try:
                import_object(target, f"{kind} {key}")
            except OprackError as e:
                yield Finding("strings", str(e), "correct the string where pack.py registers it")


def _array_libraries(subject: Subject) -> Iterator[Finding]:
    """Definitions are imported to print documentation and to check programs, also where no array library is."""
    # classes derived from OperatorWithKernel are code that runs ops, and come with it
    plain = {t for t in subject.ops if subject.manager.op_info(t).creator is None}
    modules = sorted({e.define.partition(":")[0] for t, e in subject.manifest.ops.items() if t in plain})
    if not modules:
        return
    top = str(subject.source.directory.parents[subject.source.package.count(".")])
    code = (
        f"import sys, importlib; sys.path.insert(0, {top!r}); [importlib.import_module(m) for m in {modules!r}]; "
        f"print(*(m for m in {_ARRAY_LIBRARIES!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 0 and (loaded := done.stdout.split()):
        yield Finding(
            "strings",
            f"importing the definitions imports {' and '.join(loaded)}",
            "import it in kernels only; a rule works on numbers and lists",
        )
