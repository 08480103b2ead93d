"""Files of each format read into their declared types, and by plain Spark into the same ones.

The script by hand gives Spark's reader the types and lets it guess; Lakewright looks at the files first, and
converts each value or names it. Both write nowhere.

LAKEWRIGHT_READING_ROWS=30000 python -m benchmarks Reading
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.fold import processor_seconds
from benchmarks.report import Row
from benchmarks.strategies.slices import write_slice
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity


ROWS = int(os.environ.get("LAKEWRIGHT_READING_ROWS", "300000"))
COLUMNS, PARTS = 20, 1_000
TYPES = {"n": "bigint", "d": "double", "t": "string"}


@dataclass(frozen=True, slots=True)
class Case:
    """Files that are read: their format, in how many parts, and whether they hold structs and lists."""

    kind: str
    is_split: bool = False
    is_nested: bool = False


CASES: Mapping[str, Case] = {
    "CSV": Case("csv"),
    "JSON": Case("json"),
    "JSON with structs and lists": Case("json", is_nested=True),
    "Parquet": Case("parquet"),
    "CSV, many parts": Case("csv", is_split=True),
    "JSON, many parts": Case("json", is_split=True),
    "Parquet, many parts": Case("parquet", is_split=True),
}


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the processor time of reading with Lakewright compared with plain Spark, in one warm process."""
    command = [sys.executable, "-m", "benchmarks.reading", str(folder), str(rounds)]
    found = json.loads(time_command(command).output.splitlines()[-1])
    return [_row(name, *found[name]) for name in CASES]


def _row(name: str, tool: list[float], hand: list[float]) -> Row:
    parts = f" ({PARTS:,} files)" if CASES[name].is_split else ""
    return Row(
        f"{name}{parts}",
        f"CPU {tool[0]:.1f} s : {hand[0]:.1f} s = {tool[0] / hand[0]:.2f}; "
        f"elapsed {tool[1]:.1f} s : {hand[1]:.1f} s",
    )


def measure(
    lake: Lake, session: SparkSession, folder: Path, rounds: int, *, rows: int, parts: int
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of processor and clock of both, by the names of `CASES`; they take turns.

    Args:
        lake: A lake.
        session: A strict session of it.
        folder: Where files are written.
        rounds: How often each takes a turn, after one that isn't counted.
        rows: Number of rows.
        parts: Number of files of a case with many parts.
    """
    found = {}
    for name, case in CASES.items():
        place = written(folder, session, case, rows, parts if case.is_split else 1)
        ways = (read_typed, read_by_hand)
        taken: tuple[list[tuple[float, float]], ...] = ([], [])
        for number in range(rounds + 1):
            for way, times in zip(ways, taken, strict=True):
                begin, before = time.monotonic(), processor_seconds()
                way(lake, session, place, case).write.format("noop").mode("overwrite").save()
                if number:
                    times.append((processor_seconds() - before, time.monotonic() - begin))
        tool, hand = ([median(each) for each in zip(*times, strict=True)] for times in taken)
        found[name] = (tool, hand)
    return found


def _types(case: Case) -> dict[str, str]:
    types = {"id": "bigint", "day": "date", "at": "timestamp"}
    types |= {f"{'ndt'[n % 3]}{n // 3}": TYPES["ndt"[n % 3]] for n in range(COLUMNS - 3)}
    if case.is_nested:
        inside = ", ".join(f"{name}: {kind}" for name, kind in list(types.items())[3:])
        return {name: types[name] for name in ("id", "day", "at")} | {
            "deep": f"struct<{inside}>",
            "list": "array<struct<n: bigint, t: string>>",
        }
    return types


def written(folder: Path, session: SparkSession, case: Case, rows: int, parts: int) -> Path:
    """Write the files of a case, and return their folder."""
    place = folder / f"{case.kind}-{parts}-{case.is_nested}"
    frame = session.read.parquet(str(write_slice(folder / "rows.parquet", rows, columns=COLUMNS)))
    if case.is_nested:
        names = [name for name in frame.columns if name not in ("id", "day", "at")]
        deep = f"named_struct({', '.join(f'{name!r}, {name}' for name in names)}) as deep"
        pair = "array(named_struct('n', n0, 't', t0), named_struct('n', n1, 't', t1)) as list"
        frame = frame.selectExpr("id", "day", "at", deep, pair)
    writer = frame.repartition(parts).write.option("header", "true")
    writer.format(case.kind).save(str(place))
    return place


def read_by_hand(lake: Lake, session: SparkSession, place: Path, case: Case) -> DataFrame:
    """Return the rows of files as Spark's reader gives them in declared types."""
    del lake
    schema = ", ".join(f"{name} {kind}" for name, kind in _types(case).items())
    return session.read.schema(schema).option("header", "true").format(case.kind).load(str(place))


def read_typed(lake: Lake, session: SparkSession, place: Path, case: Case) -> DataFrame:
    """Return the rows of files as the pipeline gets them, of an entity that declares the types."""
    from lakewright.slices.discovery import find_slice
    from lakewright.slices.reading import read_slice
    from lakewright.spec.models.slice_folder import SliceFolder
    from lakewright.transform.system_columns import SystemColumns
    from lakewright.transform.typed_columns import typed_columns

    entity = _entity(case)
    slice_ = find_slice(SliceFolder(str(place.parent)), place.name, lake)
    assert slice_ is not None
    frame = read_slice(lake, session, slice_, entity)
    names = {name: name for name in frame.columns}
    system = SystemColumns("", entity.name)
    typed = typed_columns(frame, entity, system, names, table=None, zone="UTC", kept=())
    return typed.applied(frame, has_faults=True)


def _entity(case: Case) -> Entity:
    from lakewright.spec.models.entity import Entity

    columns: list[dict[str, Any]] = [{"name": name, "datatype": kind} for name, kind in _types(case).items()]
    columns[0]["fieldroles"] = ["businesskey"]
    declared = {"id": "1", "name": "things", "connection": "bench", "processtype": "merge"}
    return Entity.model_validate({**declared, "columns": columns, "settings": {"format": case.kind}})


def _measured(folder: Path, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    from lakewright.lake.commit import strict_session
    from lakewright.lake.lake import Lake
    from lakewright.spark.conf import SessionSettings
    from lakewright.spec.models.lake import LakeSettings

    lake = Lake(LakeSettings(root_folder=str(folder)), SessionSettings(folder / "state"))
    return measure(lake, strict_session(lake), folder, rounds, rows=ROWS, parts=PARTS)


if __name__ == "__main__":
    print(json.dumps(_measured(Path(sys.argv[1]), int(sys.argv[2]))))
