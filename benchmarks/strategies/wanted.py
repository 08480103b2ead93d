"""The targets of the strategies, compared with the measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.report import Row
from benchmarks.strategies.cases import Case

Measured = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]

ROUNDING = 0.005
LARGE = 2_000_000
"""Rows from which a script without Spark is a target: below, starting a JVM's queries decides."""


def middle(measured: Measured, name: str, contestant: str, what: str = "cpu_seconds") -> float | None:
    """Return the median over the rounds of a case, or None if it was not measured."""
    rounds = measured.get(name, {}).get(contestant, ())
    return median(each[what] for each in rounds) if rounds else None


def sizes_of(measured: Measured) -> list[int]:
    """Return the numbers of rows of the measured tables with twenty columns."""
    # Tables of other sizes, of Historic only, show how time grows with columns.
    names = (name.split("_") for name in measured if name.startswith("merge_"))
    sizes = {part for parts in names for part in parts if part.endswith("x20")}
    return sorted(int(size.removesuffix("x20")) for size in sizes)


def rows_wanted(measured: Measured, history: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the result of each target, for each size."""
    rows = [row for size in sizes_of(measured) for row in _of_size(measured, size)]
    return [*rows, *_of_history(history)]


def _of_size(measured: Measured, size: int) -> Iterator[Row]:
    for strategy in ("merge", "historic"):
        name = _NAMES[strategy]
        none, some, all_ = (Case(strategy, size, share) for share in (0.0, 0.01, 1.0))
        yield from _ratio(measured, none, f"{name}, nothing changed", "naive", 0.25)
        files = middle(measured, none.name, "tool", "files")
        if files is not None:
            yield Row(f"{name}, {size:,} rows, nothing changed: files written", f"{files:.0f}", "0")
        yield from _ratio(measured, some, f"{name}, 1 % changed", "naive", 0.5)
        yield from _ratio(measured, some, f"{name}, 1 % changed", "hand", 1.1)
        yield from _overhead(measured, some, name)
        yield from _bytes(measured, some, name)
        yield from _ratio(measured, all_, f"{name}, everything changed", "hand", 1.05)
        if size >= LARGE:
            yield from _ratio(measured, some, f"{name}, 1 % changed, warm", "duckdb", 3.0, own="warm")
    column = Case("merge_column", size, 0.01)
    yield from _ratio(measured, column, "Merge, `last_seen: column`, 1 % changed", "naive", 0.8)


_NAMES = {"merge": "Merge, `last_seen: on_change`", "historic": "Historic"}
_WORDS = {"naive": "naive", "hand": "by hand", "duckdb": "duckdb"}


def _ratio(
    measured: Measured, case: Case, what: str, other: str, most: float, *, own: str = "tool"
) -> Iterator[Row]:
    """Both ratios: of CPU time, which hardly depends on other load, and of elapsed time."""
    ours, theirs = (middle(measured, case.name, name) for name in (own, other))
    if ours is None or theirs is None:
        return
    clock = (middle(measured, case.name, name, "seconds") or 0.0 for name in (own, other))
    ratio, by_clock = ours / theirs, next(clock) / next(clock)
    verdict = "" if ratio <= most + ROUNDING else ": not reached"
    yield Row(
        f"{what}, {case.rows:,} rows: CPU (elapsed) : *{_WORDS[other]}*",
        f"{ratio:.2f} ({by_clock:.2f}){verdict}",
        f"≤ {most:g}",
    )


def _overhead(measured: Measured, case: Case, name: str) -> Iterator[Row]:
    own, theirs = (middle(measured, case.name, who, "seconds") for who in ("tool", "hand"))
    if own is None or theirs is None:
        return
    most = 0.05 * theirs + 0.3
    verdict = "" if own - theirs <= most else ": not reached"
    yield Row(
        f"{name}, 1 % changed, {case.rows:,} rows: more time than *by hand*",
        f"{own - theirs:+.2f} s{verdict}",
        f"≤ {most:.2f} s (5 % + 0.3 s)",
    )


def _bytes(measured: Measured, case: Case, name: str) -> Iterator[Row]:
    own = middle(measured, case.name, "tool", "bytes")
    first = middle(measured, case.name, "tool", "table_bytes")
    if own is None or first is None:
        return
    versions = 2 if case.strategy == "historic" else 1
    ratio = own / (first * case.share * versions)
    verdict = "" if ratio <= 1.2 + ROUNDING else ": not reached"
    yield Row(
        f"{name}, 1 % changed, {case.rows:,} rows: bytes written : bytes of the changed rows",
        f"{ratio:.2f}{verdict}",
        "≤ 1.2",
    )


def _of_history(history: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    if not history:
        return
    early, late = (median(each["cpu_seconds"] for each in part) for part in (history[2:7], history[-5:]))
    verdict = "" if late / early <= 1.5 + ROUNDING else ": not reached"
    yield Row(
        "Historic: slices 46 to 50 compared with slices 2 to 6, CPU time, including maintenance",
        f"{late / early:.2f}{verdict}",
        "≤ 1.5",
    )
