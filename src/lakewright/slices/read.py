"""Reading a slice, exactly the files that it consists of.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lakewright.lake.parquet_footer import MisreadColumns, misread_columns
from lakewright.lake.paths import local_path
from lakewright.slices.quotes import quote_options
from lakewright.transform.casts import micros_sql
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.slices.discover import Slice
    from lakewright.spec.models.entity import Entity

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
    peculiar = _peculiar_columns(slice_) if entity.settings.bronze_format == "parquet" else None
    fine = (peculiar and peculiar.nanoseconds) or {}
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true" if fine else "false")
    frame = (
        session.read.format(entity.settings.bronze_format)
        .options(**_options(session, slice_, entity))
        .load(slice_.path)
    )
    if peculiar is None:
        return frame
    keys = {name.lower() for name in entity.business_keys}
    typeless = [name for name in peculiar.typeless if name.lower() not in keys]
    return _with_true_types(frame, fine, typeless) if fine or typeless else frame


def _peculiar_columns(slice_: Slice) -> MisreadColumns | None:
    """What is peculiar about the columns of all files, or None where that can't be known.

    Times in nanoseconds are none where some are out of reach; a column has a type that has one in some file.
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
            own = None  # reading it says what is wrong
        if own is None:
            return None
        are_inside = are_inside or own.nanoseconds is None
        nanoseconds |= own.nanoseconds or {}
        typeless, typed = typeless | own.typeless, typed | own.typed
    return MisreadColumns({} if are_inside else nanoseconds, typeless - typed, typed)


def _with_true_types(frame: DataFrame, times: Mapping[str, bool], typeless: Iterable[str]) -> DataFrame:
    """The frame with numbers as the times that they are, and with columns that have no type as such."""
    from pyspark.sql import functions

    columns = {
        name: functions.expr(micros_sql(name_sql(name), column=name, is_utc=is_utc))
        for name, is_utc in times.items()
    }
    return frame.withColumns({**columns, **dict.fromkeys(typeless, functions.lit(None))})


def _options(session: SparkSession, slice_: Slice, entity: Entity) -> dict[str, str]:
    # Names with `*` or `[` are names, not patterns.
    options = {"__globPaths__": "false", **_OPTIONS[entity.settings.bronze_format]}
    if entity.settings.bronze_format == "csv":
        options |= quote_options(session, slice_)
    if len(slice_.files) > 1 and entity.settings.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's checksums of local files can't do with a colon in a name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options
