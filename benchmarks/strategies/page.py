"""The page of measurements of the strategies: every case, and a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import write_section
from benchmarks.strategies.cases import CONTESTANTS, Case, every_case
from benchmarks.strategies.picture import Bar, draw
from benchmarks.strategies.wanted import Measured, middle, sizes_of

FOLDER = Path(__file__).parent
PICTURE = "results.svg"
TITLE = "Strategies in detail"

_TITLES = {
    "merge": "Merge, `last_seen: on_change`",
    "merge_column": "Merge, `last_seen: column`",
    "historic": "Historic",
}
_TEXT = f"""\
Contestants apply the same slices in turns, of twenty columns unless stated otherwise. Their tables are
compared after each turn. One turn of each strategy's first case warms up and is not counted. A JVM has a
quarter of the machine's memory as heap.

| contestant | what it is |
|---|---|
| tool | Lakewright, with Java's quick compiler only |
| naive | a script that follows the strategies' rules literally, on the defaults of Java, Spark and Delta |
| by hand | a tuned script: same session, changed rows only, deletion vectors, one MERGE, no checks |
| duckdb | a script without Spark: DuckDB finds changed rows, deltalake rewrites files; no checks |
| warm | Lakewright in a JVM like that of `lakewright serve`, where 1 % changes |

Figures are elapsed seconds, then CPU seconds of the JVM and Python; `-` was not measured. Bytes are those of
new data files and deletion vectors.

![CPU seconds of the contestants]({PICTURE})
"""


def write_details(measured: Measured, history: Sequence[Mapping[str, Any]]) -> None:
    """Write the section of all cases, and its chart."""
    sizes = sizes_of(measured)
    cases = [case for case in every_case(tuple(sizes)) if measured.get(case.name)] if sizes else []
    draw(FOLDER / PICTURE, list(_bars(measured, cases)), {name: name for name in CONTESTANTS})
    parts = [_TEXT, *_tables(measured, cases), *_memory(measured), *_history(history)]
    write_section(FOLDER / "results.md", TITLE, "\n".join(parts))


def _tables(measured: Measured, cases: Sequence[Case]) -> Iterator[str]:
    for strategy, title in _TITLES.items():
        chosen = [case for case in cases if case.strategy == strategy]
        if chosen:
            lines = [
                f"### {title}\n",
                f"| slice applied to a table of | {' | '.join(CONTESTANTS)} | MB written | Spark jobs |",
                "|---" * (len(CONTESTANTS) + 3) + "|",
                *(_line(measured, case) for case in chosen),
                "",
            ]
            yield "\n".join(lines)


def _line(measured: Measured, case: Case) -> str:
    times = (_times(measured, case, name) for name in CONTESTANTS)
    figures = [
        " / ".join(_figure(middle(measured, case.name, name, what), unit) for name in CONTESTANTS)
        for what, unit in (("bytes", 1e6), ("jobs", 1))
    ]
    return f"| {case.what} | {' | '.join([*times, *figures])} |"


def _times(measured: Measured, case: Case, contestant: str) -> str:
    clock, cpu = (middle(measured, case.name, contestant, what) for what in ("seconds", "cpu_seconds"))
    return "-" if clock is None or cpu is None else f"{clock:.1f} s, CPU {cpu:.1f}"


def _figure(value: float | None, unit: float) -> str:
    if value is None:
        return "-"
    return f"{value / unit:.1f}" if unit > 1 else f"{value:.0f}"


def _memory(measured: Measured) -> Iterator[str]:
    tops = {
        name: max(
            (each["memory_mib"] for case in measured.values() for each in case.get(name, ())), default=0
        )
        for name in CONTESTANTS
    }
    if any(tops.values()):
        listed = ", ".join(f"{name} {top:,} MiB" for name, top in tops.items())
        yield f"Peak resident memory of each JVM, or of Python without one, over all cases: {listed}.\
"
    loads = [
        each["load"]
        for case in measured.values()
        for rounds in case.values()
        for each in rounds
        if "load" in each
    ]
    if loads:
        yield (
            f"The load of the machine, including the contestants, was {min(loads):.0f} to {max(loads):.0f} "
            "during the measurement.\
"
        )


def _history(history: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not history:
        return
    yield "### Fifty slices\
\
Historic; each slice contains the 1 % of rows that changed. Times include compaction.\
"
    yield "| slice | seconds | CPU seconds | jobs |\n|---|---|---|---|"
    for number in (1, 2, 5, 10, 20, 30, 40, 49, 50):
        if number < len(history):
            each = history[number]
            yield f"| {number} | {each['seconds']:.1f} | {each['cpu_seconds']:.1f} | {each['jobs']} |"
    yield ""


def _bars(measured: Measured, cases: Sequence[Case]) -> Iterator[Bar]:
    for case in cases:
        values = {name: middle(measured, case.name, name) for name in CONTESTANTS}
        known = {name: value for name, value in values.items() if value is not None}
        title = _TITLES[case.strategy].replace("`", "")
        yield Bar(f"{title}, {case.what}", known)
