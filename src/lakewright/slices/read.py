"""Reading a slice, exactly the files that it consists of.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import SliceError
from lakewright.lake.files import join, local_path
from lakewright.lake.parquet import nanosecond_columns
from lakewright.lake.quotes import quoted_line_ends
from lakewright.transform.casts import micros_sql
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.slices.discover import Slice
    from lakewright.spec.entity import Entity

__all__ = ["read_slice"]

_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_OPTIONS: dict[str, dict[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST"},
    "parquet": {"parquet.page.verify-checksum.enabled": "true"},
    "avro": {},
    "orc": {},
}


def read_slice(session: SparkSession, slice_: Slice, entity: Entity) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are brought together by name.

    Raises:
        SliceError: A CSV file's quotes leave open where its fields end.
    """
    fine = _nanosecond_columns(slice_) if entity.bronze_format == "parquet" else {}
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true" if fine else "false")
    frame = session.read.format(entity.bronze_format).options(**_options(slice_, entity)).load(slice_.path)
    return _with_times(frame, fine) if fine else frame


def _nanosecond_columns(slice_: Slice) -> dict[str, bool]:
    """Columns with times in nanoseconds, which Spark reads as numbers; none where some are out of reach."""
    found: dict[str, bool] = {}
    for path in _local_files(slice_):
        if path is None:
            return {}
        try:
            own = nanosecond_columns(path)
        except (ValueError, OSError):
            return {}  # reading it says what is wrong
        if own is None:
            return {}
        found |= own
    return found


def _local_files(slice_: Slice) -> Iterator[Path | None]:
    """Yield the slice's files on this machine; None for one elsewhere."""
    for file in slice_.files:
        yield local_path(join(slice_.path, file.name) if slice_.is_folder else slice_.path)


def _with_times(frame: DataFrame, columns: Mapping[str, bool]) -> DataFrame:
    from pyspark.sql import functions

    times = {
        name: functions.expr(micros_sql(name_sql(name), column=name, is_utc=is_utc))
        for name, is_utc in columns.items()
    }
    return frame.withColumns(times)


def _options(slice_: Slice, entity: Entity) -> dict[str, str]:
    # Names with `*` or `[` are names, not patterns.
    options = {"__globPaths__": "false", **_OPTIONS[entity.bronze_format]}
    if entity.bronze_format == "csv":
        options |= _quote_options(slice_)
    if len(slice_.files) > 1 and entity.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's checksums of local files can't do with a colon in a name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options


def _quote_options(slice_: Slice) -> dict[str, str]:
    """Options to read line breaks inside quotes; none where there are no such breaks: files can be split."""
    whole = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"}
    ends: set[str] = set()
    for path in _local_files(slice_):
        try:
            own = None if path is None else quoted_line_ends(path)
        except ValueError as error:
            raise SliceError(
                f"the slice {slice_.name} can't be read: {path}: {error}",
                remedy="Close its quotes, double those inside them, then resolve the item; "
                "else resolve and skip it.",
            ) from error
        if own is None:
            return whole
        ends |= own
    if len(ends) > 1:
        raise SliceError(
            f"the slice {slice_.name} has line breaks inside quotes, and lines that end in different ways: "
            f"{', '.join(sorted(map(repr, ends)))}",
            remedy="Let its lines end alike, then resolve the item; else resolve and skip it.",
        )
    # Told how lines end, Spark leaves other line breaks inside quotes as they are.
    return {**whole, "lineSep": ends.pop()} if ends else {}
