"""What a reader finds that looks while others write; and local files as the readers of formats take them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lakewright.lake.files import LocalFiles
from lakewright.reader.source import Form, KnownColumns, Reading, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_reading(
    session: SparkSession, source: Source, form: Form, known: KnownColumns | None = None, **others: Any
) -> Reading:
    """Return files of this machine as what is read in a form."""
    source = replace(source, kind=form.kind)
    return Reading(session, LocalFiles(), source, form, known or KnownColumns("UTC"), **others)


def rows_of_files(folder: Path) -> int:
    """Return the rows of a folder's Parquet files, -1 where no folder is.

    A folder that is replaced while it is read is read again, as a query would have to be.
    """
    while True:
        try:
            before = folder.stat().st_ino
            counts = [len(pd.read_parquet(file)) for file in folder.glob("*.parquet")]
            if folder.stat().st_ino == before:
                return sum(counts)
        except FileNotFoundError:
            if not folder.exists():
                return -1
