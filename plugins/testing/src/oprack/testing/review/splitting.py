"""Whether rules of splitting are right: each signature on ranks that are threads, by the pack's own cases."""

from __future__ import annotations

from collections.abc import Iterator

from oprack.testing.review.subject import Finding, Subject

MOST = 6
"""So many cases of an op are tried."""


def review(subject: Subject) -> Iterator[Finding]:
    """Compute cases of each op with a rule on parts, outputs and gradients, and compare them with the whole."""
    from oprack.testing.splitting import check_splitting

    for op_type in subject.each(subject.ops, "splitting"):
        if subject.manager.op_info(op_type).sbp is None or not subject.calls_of(op_type):
            continue
        tried, told = 0, set[str]()
        for call in subject.calls_of(op_type)[:MOST]:
            count, wrong = check_splitting(call)
            tried += count
            for text in wrong:
                if text not in told:
                    told.add(text)
                    yield Finding(
                        "splitting",
                        text,
                        "mend `sbp` in the definition: oprack.op.sbp.factors takes names of dims, as an einsum, and "
                        "splits no dim that is `no` or has no name; `share`, `linear` and `mean` say what sums are",
                    )
        if not tried:
            yield Finding(
                "splitting",
                f"op {op_type}: no case has inputs that its rule sbp splits over two ranks",
                f"add an OpCase to {subject.case_file(op_type)} whose dims are at least 2, or drop the rule",
                note=True,
            )
