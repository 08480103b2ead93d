"""Reading of ORC files, each in its own types, and together in types that hold the values of all.

Source: the rules of reading, "Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.paths import FileEntry
from lakewright.reader.groups import read_parts
from lakewright.reader.source import Reading, uri
from lakewright.spark.jvm import is_jvm_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_orc(reading: Reading) -> DataFrame:
    """Return the rows of ORC files, lazily; columns of several files are merged by name.

    Only Spark reads their schemas. It merges them at once, unless a column has several types.

    Raises:
        LakewrightError: A column has types that no type holds.
    """
    files = reading.source.files
    if len(files) == 1:
        return reading.load()
    try:
        return reading.load(options={"mergeSchema": "true"})
    except Exception as error:
        if is_jvm_failure(error):
            raise
    by_schema: dict[str, list[FileEntry]] = {}
    for file in files:
        own = reading.load([uri(reading.source.path(file))])
        by_schema.setdefault(own.schema.json(), []).append(file)
    return read_parts(reading, by_schema.values())
