"""The results of bench_models.py and bench_use.py as tables and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines import BEFORE, ENGINES, OURS, peers_of
from turns import Result

TICKS = (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
KINDS = {
    "ms": "run after run",
    "mean ms": "sizes new to the process",
    "runs/s": "one Python thread",
    "of two": "two Python threads",
}
"""What the columns of bench_use.py say, in words."""


def table(results: list[Result]) -> str:
    """One line for each engine and workload.

    ratio: oprack's median over that of the fastest peer, or over that of another checkout where no peer took part.
    """
    head = (
        f"{'workload':<32}{'T':>2}  {'engine':<15}{'median':>9}{'p10':>9}{'p90':>9}{'ratio':>7}{'MiB':>7}{'start':>7}"
    )
    lines = [head + "  difference"]
    for r in results:
        peers = [
            p.median_ms
            for p in results
            if (p.workload, p.threads) == (r.workload, r.threads) and p.engine in peers_of(r.engine)
            if p.median_ms and not p.error
        ]
        if not peers and r.engine != BEFORE:
            before = (p for p in results if (p.workload, p.threads, p.engine) == (r.workload, r.threads, BEFORE))
            peers = [p.median_ms for p in before if p.median_ms]
        ratio = f"{r.median_ms / min(peers):.2f}" if r.engine in OURS and peers and r.median_ms else ""
        if r.error:
            lines.append(f"{r.workload:<32}{r.threads:>2}  {r.engine:<15}{r.error[:80]}")
            continue
        times = f"{r.median_ms:>9.2f}{r.p10_ms:>9.2f}{r.p90_ms:>9.2f}{ratio:>7}"
        difference = "-" if r.difference is None else f"{r.difference:.1e}"
        lines.append(
            f"{r.workload:<32}{r.threads:>2}  {r.engine:<15}{times}{r.peak_mib:>7.0f}{r.start_up_s:>7.2f}  {difference}"
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


def _pyplot() -> Any:
    """Matplotlib, drawing into files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def ratios_picture(parts: dict[str, list[dict[str, object]]], path: Path) -> None:
    """A line for each workload, with a mark for each of oprack's ratios to its best peer, the worst line on top.

    parts: rows of bench_use.py's tables; a workload of two tables is drawn as the first one has it.
    """
    plt = _pyplot()
    found: dict[str, dict[str, float]] = {}
    for row in (row for rows in parts.values() for row in rows if row["engine"] == "oprack"):
        ratios = {key.removesuffix(" ratio"): float(str(row[key])) for key in row if key.endswith(" ratio")}
        if ratios:
            found.setdefault(f"{row['what']}, T={row['T']}", ratios)
    lines = sorted(found.items(), key=lambda line: max(line[1].values()))
    figure, axes = plt.subplots(figsize=(9, 0.2 * len(lines) + 1.5))
    for kind in dict.fromkeys(kind for _, ratios in lines for kind in ratios):
        marks = [(ratios[kind], y) for y, (_, ratios) in enumerate(lines) if kind in ratios]
        axes.plot([x for x, _ in marks], [y for _, y in marks], "o", markersize=4, label=KINDS.get(kind, kind))
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(lines)), [what for what, _ in lines], fontsize=8)
    axes.set_ylim(-1, len(lines))
    axes.set_xscale("log")
    axes.set_xticks([x for x in TICKS if x <= 5], [f"{x:g}" for x in TICKS if x <= 5])
    axes.minorticks_off()
    axes.set_xlabel("oprack's time relative to the best peer's (left of 1: oprack is faster)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def picture(results: list[Result], path: Path) -> None:
    """Bars of the medians, a group for each workload, relative to the fastest engine of the group."""
    plt = _pyplot()
    times = {(r.workload, r.threads, r.engine): r.median_ms for r in results if r.median_ms and not r.error}
    groups = list(dict.fromkeys((w, t) for w, t, _ in times))
    fastest = {g: min(ms for key, ms in times.items() if key[:2] == g) for g in groups}
    engines = [e for e in ENGINES if any(key[2] == e for key in times)]
    figure, axes = plt.subplots(figsize=(10, 0.6 * len(groups) + 2))
    height = 0.8 / len(engines)
    colours = plt.get_cmap("tab20").colors  # the usual ten are fewer than the engines
    for k, engine in enumerate(engines):
        bars = [(i + k * height, times[*g, engine] / fastest[g]) for i, g in enumerate(groups) if (*g, engine) in times]
        axes.barh([y for y, _ in bars], [x for _, x in bars], height, label=engine, color=colours[k % len(colours)])
    axes.set_yticks([i + 0.4 for i in range(len(groups))], [f"{w}, T={t}" for w, t in groups])
    axes.set_ylim(len(groups), -0.3)
    axes.set_xlabel("median time, relative to the fastest engine of T threads (shorter is better)")
    axes.set_xscale("log")
    slowest = max(ms / fastest[w, t] for (w, t, _), ms in times.items())
    ticks = [x for x in TICKS if 1 <= x < slowest * 1.5]
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
