"""Reading a slice, exactly the files that it consists of.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    "parquet": {"parquet.page.verify-checksum.enabled": "true"},
    "avro": {},
    "orc": {},
}


def read_slice(session: SparkSession, slice_: Slice, entity: Entity) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are brought together by name."""
    return session.read.format(entity.bronze_format).options(**_options(slice_, entity)).load(slice_.path)


def _options(slice_: Slice, entity: Entity) -> dict[str, str]:
    # Names with `*` or `[` are names, not patterns.
    options = {"__globPaths__": "false", **_OPTIONS[entity.bronze_format]}
    if len(slice_.files) > 1 and entity.bronze_format in {"parquet", "orc"}:
        options["mergeSchema"] = "true"
    if local_path(slice_.path) is not None and any(
        ":" in name for name in (slice_.name, *(f.name for f in slice_.files))
    ):
        # Hadoop's checksums of local files can't do with a colon in a name.
        options |= {"fs.file.impl": _RAW, "fs.file.impl.disable.cache": "true"}
    return options
