"""The results of bench_models.py as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

from engines import BEFORE, ENGINES, OURS, peers_of
from turns import Result


def table(results: list[Result]) -> str:
    """One line for each engine and workload.

    ratio: oprack's median over that of the fastest peer, or over that of another checkout where no peer took part.
    """
    head = (
        f"{'workload':<26}{'T':>2}  {'engine':<15}{'median':>9}{'p10':>9}{'p90':>9}{'ratio':>7}{'MiB':>7}{'start':>7}"
    )
    lines = [head + "  difference"]
    for r in results:
        peers = [
            p.median_ms
            for p in results
            if (p.workload, p.threads) == (r.workload, r.threads) and p.engine in peers_of(r.engine) and p.median_ms
        ]
        if not peers and r.engine != BEFORE:
            before = (p for p in results if (p.workload, p.threads, p.engine) == (r.workload, r.threads, BEFORE))
            peers = [p.median_ms for p in before if p.median_ms]
        ratio = f"{r.median_ms / min(peers):.2f}" if r.engine in OURS and peers and r.median_ms else ""
        if r.error:
            lines.append(f"{r.workload:<26}{r.threads:>2}  {r.engine:<15}{r.error[:80]}")
            continue
        times = f"{r.median_ms:>9.2f}{r.p10_ms:>9.2f}{r.p90_ms:>9.2f}{ratio:>7}"
        difference = "-" if r.difference is None else f"{r.difference:.1e}"
        lines.append(
            f"{r.workload:<26}{r.threads:>2}  {r.engine:<15}{times}{r.peak_mib:>7.0f}{r.start_up_s:>7.2f}  {difference}"
        )
    return "\n".join(lines)


def in_columns(rows: list[dict[str, object]]) -> str:
    """Rows of one table under the names of their columns, which are as wide as what is in them."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([str(row.get(c, "")) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    texts = {"what", "engine"}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in texts else cell.rjust(width)
            for column, cell, width in zip(columns, line, widths, strict=True)
        ).rstrip()
        for line in cells
    )


def picture(results: list[Result], path: Path) -> None:
    """Bars of the medians, a group for each workload, relative to the fastest engine of the group."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times = {(r.workload, r.threads, r.engine): r.median_ms for r in results if r.median_ms}
    groups = list(dict.fromkeys((w, t) for w, t, _ in times))
    fastest = {g: min(ms for key, ms in times.items() if key[:2] == g) for g in groups}
    engines = [e for e in ENGINES if any(key[2] == e for key in times)]
    figure, axes = plt.subplots(figsize=(10, 0.6 * len(groups) + 2))
    height = 0.8 / len(engines)
    for k, engine in enumerate(engines):
        bars = [(i + k * height, times[*g, engine] / fastest[g]) for i, g in enumerate(groups) if (*g, engine) in times]
        axes.barh([y for y, _ in bars], [x for _, x in bars], height, label=engine)
    axes.set_yticks([i + 0.4 for i in range(len(groups))], [f"{w}, T={t}" for w, t in groups])
    axes.set_ylim(len(groups), -0.3)
    axes.set_xlabel("median time, relative to the fastest engine of T threads (shorter is better)")
    axes.set_xscale("log")
    slowest = max(ms / fastest[w, t] for (w, t, _), ms in times.items())
    ticks = [x for x in (1, 1.5, 2, 3, 5, 10, 20, 50, 100) if x < slowest * 1.5]
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
