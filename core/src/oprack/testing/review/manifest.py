"""Whether ops.toml is what `oprack manifest` would write."""

from __future__ import annotations

from collections.abc import Iterator

from oprack.packs.manifest import render
from oprack.testing.review.subject import Finding, Subject


def review(subject: Subject) -> Iterator[Finding]:
    """Compare the file with the source tree, and name ops that only one of them has."""
    target = subject.source.manifest_path
    current = target.read_text(encoding="utf-8") if target.is_file() else ""
    if current == render(subject.manifest):
        return
    lacking = [t for t in subject.manifest.ops if f"[ops.{t}]" not in current]
    what = f"it lacks {', '.join(lacking)}, so nobody finds these ops" if lacking else "it does not fit the source tree"
    yield Finding("manifest", f"{target.name} is stale: {what}", f"run `oprack manifest {subject.path}`")
