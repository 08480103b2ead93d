"""Reading a slice, exactly the files that it consists of.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakewright.errors import SliceError
from lakewright.lake.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.slices.discover import Slice
    from lakewright.spec.entity import Entity

__all__ = ["read_slice"]

_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"

_OPTIONS: dict[str, dict[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
    "avro": {},
    "orc": {},
}


def read_slice(session: SparkSession, slice_: Slice, entity: Entity) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are brought together by name.

    Raises:
        SliceError: It can't be read.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    reader = session.read.format(entity.bronze_format).options(**_options(slice_, entity))
    try:
        return reader.load(slice_.path)
    except (PySparkException, Py4JJavaError) as error:
        raise unreadable(slice_, error) from error


def unreadable(slice_: Slice, error: BaseException) -> SliceError:
    """Return the error for a slice that Spark could not read."""
    said = str(error).strip().partition("\n")[0]
    return SliceError(
        f"the slice {slice_.name} can't be read: {said}",
        remedy="Deliver it again, then resolve the item; or skip it.",
        details={"path": slice_.path},
    )


def _options(slice_: Slice, entity: Entity) -> dict[str, str]:
    # Names with `*` or `[` are names, not patterns.
    options: dict[str, Any] = {"__globPaths__": "false", **_OPTIONS[entity.bronze_format]}
    if len(slice_.files) > 1 and entity.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's checksums of local files can't do with a colon in a name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options
