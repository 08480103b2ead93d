"""Reading of a slice: exactly its files, with the options and types that its format needs.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice);
RFC 4180, section 2 (line breaks inside quotes).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import SliceError
from lakewright.lake.file_probe import quoted_line_ends
from lakewright.lake.parquet_footer import MisreadColumns, misread_columns
from lakewright.lake.paths import local_path
from lakewright.transform.casts import micros_sql
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.slices.discover import Slice
    from lakewright.spec.models.entity import Entity

__all__ = ["quote_options", "read_slice"]

_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_OPTIONS: dict[str, dict[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST"},
    "parquet": {"parquet.page.verify-checksum.enabled": "true"},
    "avro": {},
    "orc": {},
}


def read_slice(session: SparkSession, slice_: Slice, entity: Entity) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are merged by name.

    Raises:
        SliceError: A quote in a CSV file is not closed.
    """
    misread = _misread_columns(slice_) if entity.settings.bronze_format == "parquet" else None
    nanoseconds = (misread and misread.nanoseconds) or {}
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true" if nanoseconds else "false")
    frame = (
        session.read.format(entity.settings.bronze_format)
        .options(**_options(session, slice_, entity))
        .load(slice_.path)
    )
    if misread is None:
        return frame
    keys = {name.lower() for name in entity.business_keys}
    typeless = [name for name in misread.typeless if name.lower() not in keys]
    return _with_true_types(frame, nanoseconds, typeless) if nanoseconds or typeless else frame


def _misread_columns(slice_: Slice) -> MisreadColumns | None:
    """Return the columns of all files that Spark misreads, or None if the footers cannot be read.

    Nanoseconds are left out if some are inside other types. A column has a type if it has one in any file.
    """
    nanoseconds: dict[str, bool] = {}
    typeless: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    are_inside = False
    for file in slice_.paths:
        path = local_path(file)
        try:
            own = None if path is None else misread_columns(path)
        except (ValueError, OSError):
            own = None  # Spark reports the error when it reads the file
        if own is None:
            return None
        are_inside = are_inside or own.nanoseconds is None
        nanoseconds |= own.nanoseconds or {}
        typeless, typed = typeless | own.typeless, typed | own.typed
    return MisreadColumns({} if are_inside else nanoseconds, typeless - typed, typed)


def _with_true_types(frame: DataFrame, times: Mapping[str, bool], typeless: Iterable[str]) -> DataFrame:
    """Return the frame with nanoseconds as timestamps, and with columns without a type as nulls."""
    from pyspark.sql import functions

    columns = {
        name: functions.expr(micros_sql(name_sql(name), column=name, is_utc=is_utc))
        for name, is_utc in times.items()
    }
    return frame.withColumns({**columns, **dict.fromkeys(typeless, functions.lit(None))})


def _options(session: SparkSession, slice_: Slice, entity: Entity) -> dict[str, str]:
    # A name with `*` or `[` is not a pattern.
    options = {"__globPaths__": "false", **_OPTIONS[entity.settings.bronze_format]}
    if entity.settings.bronze_format == "csv":
        options |= quote_options(session, slice_)
    if len(slice_.files) > 1 and entity.settings.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's file system with checksums cannot open local files with a colon in their name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options


def quote_options(session: SparkSession, slice_: Slice) -> dict[str, str]:
    """Return the CSV options to read line breaks inside quotes.

    Without such line breaks no options are needed, and Spark can read one file in several tasks.

    Raises:
        SliceError: A quote is not closed at the end of its field, or lines have different endings.
    """
    whole = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"}
    ends: set[str] = set()
    files = {path: local_path(path) for path in slice_.paths}
    remote = [path for path, local in files.items() if local is None]
    if remote and not _has_odd_lines(session, remote):
        return {}
    for path, local in files.items():
        try:
            own = _far_line_ends(session, path) if local is None else quoted_line_ends(local)
        except ValueError as error:
            raise SliceError(
                f"the slice {slice_.name} can't be read: {path}: {error}",
                remedy="Close its quotes, double those inside them, then resolve the item; "
                "otherwise resolve and skip it.",
            ) from error
        if own is None:
            return whole
        ends |= own
    if len(ends) > 1:
        raise SliceError(
            f"the slice {slice_.name} has line breaks inside quotes, and lines with different endings: "
            f"{', '.join(sorted(map(repr, ends)))}",
            remedy="Use one kind of line ending, then resolve the item; otherwise resolve and skip it.",
        )
    # If Spark knows the line ending, it keeps other line breaks inside quotes.
    return {**whole, "lineSep": ends.pop()} if ends else {}


def _has_odd_lines(session: SparkSession, paths: Sequence[str]) -> bool:
    """Return whether a line of remote files has an odd number of quotes, found by a query."""
    lines = session.read.option("__globPaths__", "false").text(list(paths))
    return not lines.where("length(value) % 2 <> length(replace(value, '\"')) % 2").isEmpty()


def _far_line_ends(session: Any, path: str) -> frozenset[str] | None:
    """Return the line endings in a remote file, of which a temporary copy is made."""
    place = session._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(session._jsc.hadoopConfiguration())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy").with_suffix(Path(path).suffix)
        system.copyToLocalFile(False, place, session._jvm.org.apache.hadoop.fs.Path(f"file://{copy}"), True)
        return quoted_line_ends(copy)
