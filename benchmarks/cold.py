"""One slice, of which 1 % changed, in a new process: the command and a script by hand.

LAKEWRIGHT_COLD_ROWS=500000 python -m benchmarks Cold
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks.report import Row
from benchmarks.strategies.slices import write_slice
from benchmarks.timing import Measured, adopt_orphans, lakewright, load_during, time_with_jvm

__all__ = ["run"]

SIZES = tuple(map(int, os.environ.get("LAKEWRIGHT_COLD_ROWS", "300000 2000000").split()))
STRATEGIES = os.environ.get("LAKEWRIGHT_COLD_STRATEGIES", "merge historic").split()
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
CHANGED = 0.01

PROJECT = "name: cold\nmodules: [model.yml]\nlake: {root_folder: lake}\n"
MODULE = """
connections: {{bench: {{}}}}
entities:
  {strategy}:
    id: 1
    connection: bench
    destination: rows
    processtype: {strategy}
    columns: [{{name: id, fieldroles: [businesskey]}}]
    settings: {{bronze_path: {strategy}, silver_path: {strategy}{seen}}}
"""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the processor time of whole processes; each round applies one more slice of each kind."""
    adopt_orphans()
    return load_during(row for rows in SIZES for row in _measured(folder / str(rows), rows, rounds))


def _measured(folder: Path, rows: int, rounds: int) -> Iterator[Row]:
    for strategy in STRATEGIES:
        tool, hand = folder / strategy / "tool", folder / strategy / "hand"
        _write_project(tool, strategy)
        taken: dict[str, list[tuple[Measured, Measured]]] = {"first": [], "all rows": [], "changes": []}
        for version in range(2 * rounds + 1):
            kind = "changes" if version > rounds else "all rows" if version else "first"
            file = _slice(folder, rows, version, is_whole=kind != "changes")
            pair = _process(tool, strategy, file, version), _by_hand(hand, strategy, file, version)
            taken[kind].append(pair)
        yield from (_row(f"{strategy}, {rows:,} rows, {what}", taken[kind]) for kind, what in WHAT.items())


WHAT = {
    "first": "the first slice",
    "all rows": "a slice of all rows, 1 % changed",
    "changes": "a slice of the 1 % that changed",
}


def _row(what: str, taken: list[tuple[Measured, Measured]]) -> Row:
    spent, other = (median(pair[side].cpu_seconds for pair in taken) for side in (0, 1))
    clock, other_clock = (median(pair[side].seconds for pair in taken) for side in (0, 1))
    return Row(
        what,
        f"CPU {spent:.1f} s : {other:.1f} s = {spent / other:.2f}; "
        f"elapsed {clock:.1f} s : {other_clock:.1f} s = {clock / other_clock:.2f}",
        "" if "first" in what else "≤ 0.8",
    )


def _slice(folder: Path, rows: int, version: int, *, is_whole: bool) -> Path:
    share = CHANGED if version else 0.0
    return write_slice(
        folder / "slices" / f"{version}.parquet", rows, version=version, share=share, is_whole=is_whole
    )


def _at(version: int) -> str:
    return (FIRST + timedelta(hours=version)).isoformat()


def _write_project(folder: Path, strategy: str) -> None:
    folder.mkdir(parents=True)
    (folder / "project.yml").write_text(PROJECT)
    seen = ", last_seen: on_change" if strategy == "merge" else ""
    (folder / "model.yml").write_text(MODULE.format(strategy=strategy, seen=seen))


def _process(project: Path, strategy: str, file: Path, version: int) -> Measured:
    """Put the slice into bronze and process it with the command."""
    bronze = project / "lake" / "bronze" / strategy
    bronze.mkdir(parents=True, exist_ok=True)
    os.link(file, bronze / file.name)
    at = f"--processing-time={_at(version)}"
    return time_with_jvm(lakewright("--project", str(project), "process", strategy, file.name, at))


def _by_hand(place: Path, strategy: str, file: Path, version: int) -> Measured:
    script = [sys.executable, "-m", "benchmarks.cold", str(place), str(file), strategy, _at(version)]
    return time_with_jvm(script)


def _apply(place: str, file: str, strategy: str, at: str) -> None:
    """Apply a slice by the script, in the session that Lakewright builds for a short run."""
    from benchmarks.strategies.scripts import apply_by_hand
    from lakewright.spark.build import build_session
    from lakewright.spark.conf import SessionSettings

    spark = build_session(SessionSettings(Path(place).parent / "state"))
    apply_by_hand(spark, place, file, strategy, datetime.fromisoformat(at))
    spark.stop()


if __name__ == "__main__":
    _apply(*sys.argv[1:])
